"""Copies that are cut at random moments: the next run completes, and sends nothing again.

A cut is a reset of every connection, once or from then on, or the end of the process by SIGKILL.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import content
import pytest
from interop.cutting import Cutter, cutting
from interop.peers import OCIPACK, Desk
from interop.servers import Proxy, Server
from interop.test_interrupted import uploaded
from interop.wire import Repository

from ocipack.copy import Transfers
from ocipack.oci.descriptor import Descriptor
from ocipack.stores.layout import LayoutStore
from ocipack.stores.memory import MemoryStore

CUTS = 25
"""For each of the two registries; a third of them each by reset, by resets, by SIGKILL."""


@pytest.fixture
def cutter(proxy: Proxy) -> Iterator[Cutter]:
    with cutting(proxy.host) as made:
        yield made


def noise(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


def site(folder: Path, seed: int) -> tuple[str, Descriptor, list[str]]:
    """Write a layout with an index that is signed in both forms; its place, root and subjects.

    Each is made of bytes of its own: one of the registries keeps blobs for all its repositories.
    """
    store = MemoryStore()
    images = [
        content.image(
            store,
            *(noise(100 * seed + 10 * one + n, 200_000) for n in range(4)),
            noise(100 * seed + 10 * one + 9, 3 << 20),
        )
        for one in range(2)
    ]
    root = content.index(store, *images)
    for number, subject in enumerate((root, *images)):
        content.image(store, b"bundle %d" % number, subject=subject, artifactType="a/signature")
        signature = content.image(store, b"signature %d" % number)
        store.tag(signature, f"sha256-{subject.digest.hex}.sig")
    store.tag(root, "v1")
    with LayoutStore(folder) as layout, Transfers() as run:
        run.copy(store, layout, root, attached=True, tag="v1")
    return f"ocidir://{folder}:v1", root, [str(one.digest) for one in (root, *images)]


@pytest.mark.slow
def test_cut_at_random_moments(
    desk: Desk,
    server: Server,
    proxy: Proxy,
    cutter: Cutter,
    repository: Repository,
    tmp_path: Path,
) -> None:
    place, root, subjects = site(tmp_path / "whole", 0)
    cutter.arm(-1, cutter.cut)
    proxy.begin()
    desk.ocipack(*copying(place, cutter, repository.name)).expect()
    whole = cutter.sent
    assert_complete(repository, root, subjects)
    assert sum(uploaded(proxy, repository.name).values()) == len(uploaded(proxy, repository.name))
    dice = random.Random(5)
    failed = 0
    for number in range(1, CUTS + 1):
        place, root, subjects = site(tmp_path / "site" / str(number), number)
        there = Repository(repository.host, f"{repository.name}/{number}")
        command = copying(place, cutter, there.name)
        proxy.begin()
        failed += not cut(desk, command, cutter, dice.randrange(whole), number % 3)
        before = uploaded(proxy, there.name)
        assert "v1" not in there.tags() or not there.missing("v1")

        cutter.arm(-1, cutter.cut)
        proxy.begin()
        desk.ocipack(*command).expect()
        assert_complete(there, root, subjects)
        again = before & uploaded(proxy, there.name)
        # where nothing mounts, small blobs are not asked for in a repository without tags
        assert not again or not server.mounts, f"cut {number}: sent twice: {again}"
    assert failed >= CUTS // 3, "most runs ended in spite of the cut"


def copying(place: str, cutter: Cutter, name: str) -> tuple[str, ...]:
    return ("copy", place, f"oci://{cutter.host}/{name}:v1", "--allow-unsigned")


def cut(desk: Desk, command: tuple[str, ...], cutter: Cutter, after: int, how: int) -> bool:
    """Run ocipack and cut it after so many bytes; whether it ended well all the same."""
    # what measures coverage would leave half a database behind
    env = {name: value for name, value in desk.env().items() if not name.startswith("COVERAGE")}
    with (
        (desk.folder / "cut.log").open("wb") as log,
        subprocess.Popen(
            [*OCIPACK, *command], env=env, cwd=desk.folder, stdout=log, stderr=log
        ) as process,
    ):
        cutter.arm(after, (cutter.cut, cutter.die, process.kill)[how])
        return process.wait() == 0


def assert_complete(there: Repository, root: Descriptor, subjects: list[str]) -> None:
    """Look for everything with nothing of ours."""
    assert there.digest("v1") == str(root.digest)
    assert there.missing("v1") == []
    for subject in subjects:
        assert there.missing(f"{subject.replace(':', '-')}.sig") == []
        listed = there.listed(subject)
        assert len(listed) == 1
        assert there.missing(listed[0]) == []
