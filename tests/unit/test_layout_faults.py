"""A layout under SIGKILL, on a full disk, and with eight processes at once: real processes."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from content import image, index

from ocipack.copy import copy
from ocipack.oci.closure import closure
from ocipack.oci.descriptor import Descriptor
from ocipack.stores.layout import LayoutStore
from ocipack.stores.memory import MemoryStore

TESTS = str(Path(__file__).parent.parent)

CONTENT = """
    import sys
    from content import image, index
    from ocipack.copy import copy
    from ocipack.stores.layout import LayoutStore
    from ocipack.stores.memory import MemoryStore

    def content(n):
        origin = MemoryStore()
        one = image(origin, b"shared" * 50_000, b"%d" % n * 200_000)
        root = index(origin, one, image(origin, b"shared" * 50_000, b"more %d" % n))
        return origin, root, image(origin, b"signature", subject=root)
"""


def content(n: int) -> tuple[MemoryStore, Descriptor, Descriptor]:
    """What a child process writes under the tag v<n>, and a referrer of it."""
    origin = MemoryStore()
    one = image(origin, b"shared" * 50_000, b"%d" % n * 200_000)
    root = index(origin, one, image(origin, b"shared" * 50_000, b"more %d" % n))
    return origin, root, image(origin, b"signature", subject=root)


def start(code: str, *args: str) -> subprocess.Popen[bytes]:
    """Run `code` in a process of its own."""
    program = textwrap.dedent(CONTENT) + textwrap.dedent(code)
    return subprocess.Popen(
        [sys.executable, "-c", program, *args],
        env={**os.environ, "PYTHONPATH": TESTS},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def require_whole(store: LayoutStore) -> list[str]:
    """Hash all that any tag needs; return the tags that are not listings of referrers."""
    names = list(store.tags())
    for name in names:
        for node, _ in closure(store, store.resolve(name)):
            for _ in store.fetch(node):
                pass
    return [name for name in names if not name.startswith("sha256-")]


WRITE_FOREVER = """
    n = 0
    while True:
        origin, root, signature = content(n)
        print("start", flush=True)
        with LayoutStore(sys.argv[1]) as store:
            copy(origin, store, root)
            print("copied", flush=True)
            copy(origin, store, signature)
            print("listed", flush=True)
            store.tag(root, f"v{n}")
            print("tagged", flush=True)
            store.tag(root, "latest")
        n += 1
"""


@pytest.mark.parametrize("name", ["layout", "layout.tar"])
def test_sigkill_never_leaves_a_tag_on_something_incomplete(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    choice = random.Random(20260214)
    seen = 0
    for _ in range(12):
        child = start(WRITE_FOREVER, str(path))
        assert child.stdout is not None
        for _ in range(choice.randint(1, 12)):  # so many steps, and then some
            assert child.stdout.readline()
        try:
            child.wait(choice.uniform(0, 0.02))
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
        child.communicate()
        assert child.returncode == -signal.SIGKILL
        for file in path.glob("blobs/sha256/[0-9a-f]*"):
            assert hashlib.sha256(file.read_bytes()).hexdigest() == file.name
        if path.exists() and (path.is_file() or (path / "index.json").exists()):
            seen = max(seen, len(require_whole(LayoutStore(path))))
    assert seen, "no child got as far as a tag: the test says nothing"
    origin, root, signature = content(0)
    with LayoutStore(path) as store:
        copy(origin, store, root, tag="v0")
        copy(origin, store, signature)
    store = LayoutStore(path)
    require_whole(store)
    assert [found.digest for found in store.referrers(root)] == [signature.digest]
    assert not list(tmp_path.rglob("*partial*"))
    assert not list(tmp_path.rglob("*staging*"))


SHIP = """
    n = int(sys.argv[2])
    origin, root, signature = content(n)
    with LayoutStore(sys.argv[1]) as store:
        copy(origin, store, root)
        copy(origin, store, signature)
        store.tag(root, f"v{n}", was=None)
"""


@pytest.mark.parametrize("name", ["layout", "layout.tar"])
def test_eight_processes_keep_eight_tags(tmp_path: Path, name: str) -> None:
    children = [start(SHIP, str(tmp_path / name), str(n)) for n in range(8)]
    for child in children:
        _, error = child.communicate()
        assert child.returncode == 0, error.decode()
    store = LayoutStore(tmp_path / name)
    assert require_whole(store) == [f"v{n}" for n in range(8)]
    for n in range(8):
        _, root, signature = content(n)
        assert store.resolve(f"v{n}") == root
        assert [found.digest for found in store.referrers(root)] == [signature.digest]


FULL = """
    import resource
    from ocipack.errors import Unavailable
    origin, root, signature = content(1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), -1))
    try:
        with LayoutStore(sys.argv[1]) as store:
            copy(origin, store, root, tag="v1")
    except Unavailable as e:
        print(e.hint)
"""


@pytest.mark.parametrize("name", ["layout", "layout.tar"])
@pytest.mark.parametrize("room", [0, 10, 1000, 150_000])
def test_a_disk_that_takes_no_more(tmp_path: Path, name: str, room: int) -> None:
    path = tmp_path / name
    origin, root, _ = content(0)
    with LayoutStore(path) as store:
        copy(origin, store, root, tag="v0")
    out, error = start(FULL, str(path), str(room)).communicate()
    assert b"make room" in out, error.decode()
    assert require_whole(LayoutStore(path)) == ["v0"]
    assert not list(tmp_path.rglob("*partial*"))
    origin, root, _ = content(1)
    with LayoutStore(path) as store:
        copy(origin, store, root, tag="v1")
    assert require_whole(LayoutStore(path)) == ["v0", "v1"]
