"""The vendor file and its lock: what they say, what is refused and where; what is picked."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import jsonschema_rs
import pytest
import yaml
from gits import Gits
from tars import entry, layer

from ocipack.errors import IntegrityError, Misuse, NotFound, Rejected, StoreError, Unavailable
from ocipack.stores.downloads import FILE
from ocipack.tools import fetching
from ocipack.tools.fetching import Access, GitFetch
from ocipack.tree.limits import Limits
from ocipack.vendor.lock import BYTES, Held, Vendored, VendorLock
from ocipack.vendor.model import Vendor
from ocipack.vendor.pick import SOURCES, archived, picked
from ocipack.vendor.reader import ITEMS, read

DOCS = Path(__file__).parents[2] / "docs"
HEAD = "apiVersion: ocipack.dev/v1alpha1\nkind: Vendor\nvendor:\n"
HEX, COMMIT = "a" * 64, "b" * 40
URL = "url: 'https://e.example/a.yaml'"
GIT = "git: 'https://e.example/r'"


def validator(name: str) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(json.loads((DOCS / "schemas" / name).read_text()))


SCHEMA = validator("vendor-v1alpha1.json")
LOCK_SCHEMA = validator("vendor-lock-v1alpha1.json")


def vendor(*entries: str) -> Vendor:
    return read(text(*entries).encode(), file="vendor.yaml")


def text(*entries: str) -> str:
    return HEAD + "".join(f"- {{{one}}}\n" for one in entries)


def test_everything_that_a_file_can_say() -> None:
    entries = (
        f"into: a/b, {URL}, sha256: {HEX}, name: c.yaml",
        "into: t, url: 'https://e.example/a.tar.gz', path: x/y, include: ['*.yaml'], exclude: [z]",
        f"into: g, {GIT}, ref: v1.0, commit: {COMMIT}, path: k",
        "into: h, chart: 'shop:1.2.0+b', repository: 'https://c.example/stable/'",
        f"into: i, chart: 'oci://r.example/shop:1', digest: 'sha256:{HEX}'",
        "into: j, chart: r.example/shop:1",
    )

    url, archive, git, classic, chart, bare = vendor(*entries).items

    assert SCHEMA.is_valid(yaml.safe_load(text(*entries)))
    assert (url.file, url.pin, url.is_archive) == ("c.yaml", HEX, False)
    assert (archive.is_archive, archive.path, archive.include) == (True, "x/y", ("*.yaml",))
    assert (git.ref, git.pin, git.place) == ("v1.0", COMMIT, "vendor.yaml:6:3")
    assert classic.address == "helm+https://c.example/stable/shop:1.2.0+b"
    assert (chart.address, chart.pin) == ("oci://r.example/shop:1", f"sha256:{HEX}")
    assert bare.address == "oci://r.example/shop:1"
    assert dict(git.request) == {"git": "https://e.example/r", "ref": "v1.0", "path": "k"}


REFUSED: list[tuple[str, str, bool]] = [
    # what, why, and whether the schema sees it too
    (URL, "has no into", True),
    ("into: a", "does not say what it is", True),
    (f"into: a, {URL}, {GIT}", "does not say what it is", True),
    (f"into: /a, {URL}", "an absolute name", True),
    (f"into: a/../b, {URL}", "leads out", True),
    (f"into: ., {URL}", "part", True),
    (f"into: a/.git/b, {URL}", "git repository", False),
    (f"into: a, {URL}, sha: x", "unknown field 'sha'", True),
    (f"into: a, {URL}, ref: x", "unknown field 'ref'", True),
    (f"into: a, {GIT}, sha256: {HEX}", "unknown field 'sha256'", True),
    (f"into: a, {URL}, sha256: abc", "not a sha256", True),
    (f"into: a, {URL}, sha256: {HEX.upper()}", "not a sha256", True),
    (f"into: a, {URL}, path: x", "this is one file", False),
    (f"into: a, {URL}, name: x/y", "and no path", False),
    ("into: a, url: 'https://e.example/'", "not the address of a file", True),
    ("into: a, url: 'https://e.example/a?token=secret'", "not the address of a file", True),
    ("into: a, url: 'https://u:secret@e.example/a'", "credentials", True),
    ("into: a, url: 'ftp://e.example/a'", "not an address", True),
    ("into: a, url: 'https://e.example/a b'", "not an address", True),
    (f"into: a, {GIT}", "neither ref nor commit", True),
    (f"into: a, {GIT}, ref: '--upload-pack=x'", "not a ref", True),
    (f"into: a, {GIT}, ref: 'a..b'", "not a ref", False),
    (f"into: a, {GIT}, commit: abc", "not a commit", True),
    ("into: a, chart: r.example/shop", "has no version", False),
    ("into: a, chart: 'ocidir://x:1'", "not a reference", False),
    ("into: a, chart: r.example/shop:1, digest: 'sha256:1'", "not a digest", True),
    ("into: a, chart: 'shop:1', repository: 'oci://c.example'", "address of a classic", True),
    ("into: a, chart: 'a/shop:1', repository: 'https://c.example'", "address of a cl", False),
    (f"into: a, {GIT}, ref: x, include: []", "is empty", True),
    (f"into: a, {GIT}, ref: x, include: ['{'a' * 600}']", "not a pattern", False),
]


@pytest.mark.parametrize(("body", "why", "schema_sees"), REFUSED, ids=lambda one: str(one)[:50])
def test_what_is_refused_says_where_and_why(body: str, why: str, schema_sees: bool) -> None:  # noqa: FBT001 - a table of cases
    with pytest.raises(Misuse, match=rf"^vendor\.yaml:\d+:\d+: (.|\n)*{why}") as refused:
        vendor(body)
    assert "secret" not in str(refused.value)
    assert SCHEMA.is_valid(yaml.safe_load(text(body))) is not schema_sees


@pytest.mark.parametrize("pair", [("a", "a"), ("a", "a/b"), ("a/b", "A"), ("a-b", "a/x", "a")])
def test_directories_are_of_one_entry(pair: tuple[str, ...]) -> None:
    with pytest.raises(Misuse, match="is inside of"):
        vendor(*(f"into: {into}, {URL}" for into in pair))
    vendor(f"into: a, {URL}", f"into: a-b, {URL}", f"into: ab, {URL}")


def test_a_file_has_bounds() -> None:
    vendor(*(f"into: d{n}, {URL}" for n in range(ITEMS)))
    with pytest.raises(Misuse, match=f"more than {ITEMS} entries"):
        vendor(*(f"into: d{n}, {URL}" for n in range(ITEMS + 1)))
    with pytest.raises(Misuse, match="vendor is empty"):
        read(HEAD.replace("vendor:\n", "vendor: []\n").encode(), file="vendor.yaml")


LOCK = VendorLock(
    {
        "b": Vendored(
            "b", {"url": "https://e.example/1"}, "1" * 64, (Held("1e3", "2" * 64, executable=True),)
        ),
        "a": Vendored(
            "a",
            {"git": "https://e.example/r", "ref": "1.0", "path": "k", "include": ("*.yaml", "~")},
            COMMIT,
            (Held("z: #", HEX), Held("ü\u2028", HEX)),
        ),
        "c": Vendored("c", {"chart": "oci://r.example/x:1"}, f"sha256:{HEX}", (Held("x", HEX),)),
    }
)  # fmt: skip


def test_a_lock_is_read_as_it_was_written() -> None:
    data = str(LOCK).encode()

    assert VendorLock.parse(data, file="vendor.lock") == LOCK
    assert str(VendorLock.parse(data, file="x")).encode() == data
    assert LOCK_SCHEMA.is_valid(yaml.safe_load(data))
    assert VendorLock.parse(str(VendorLock({})).encode(), file="x") == VendorLock({})
    assert str(LOCK).index("into: a") < str(LOCK).index("into: b")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("  commit: ", "  digest: ", "one of url, git, chart"),
        ("- into: b", "- into: a", "two entries for a"),
        ("- into: b", "- into: ../b", "leads out"),
        ("name: x", "name: ../x", "leads out"),
        ("name: x", "name: x\n    mode: 1", "unknown field 'mode'"),
        (f"sha256: {HEX}\n    name: x", "sha256: abc\n    name: x", "not a sha256"),
        ("kind: VendorLock", "kind: Lock", "kind is not VendorLock"),
    ],
)
def test_a_lock_that_was_edited_wrong_says_where(old: str, new: str, why: str) -> None:
    changed = str(LOCK).replace(old, new)
    assert changed != str(LOCK)
    with pytest.raises(Misuse, match=rf"^vendor\.lock:\d+:\d+: (.|\n)*{why}"):
        VendorLock.parse(changed.encode(), file="vendor.lock")


def test_a_lock_has_a_bound() -> None:
    assert BYTES == 64 << 20
    with pytest.raises(Misuse, match=f"longer than {BYTES} bytes"):
        VendorLock.parse(b"#" * (BYTES + 1), file="vendor.lock")


def test_the_examples_of_the_page_are_read() -> None:
    page = (DOCS / "vendor.md").read_text(encoding="utf-8")
    blocks = [part.partition("```")[0] for part in page.split("```yaml\n")[1:]]
    assert blocks
    for block in blocks:
        assert read(block.encode(), file="vendor.yaml").items
        assert SCHEMA.is_valid(yaml.safe_load(block))


FILES = [(name, False, b"") for name in ("k/a.yaml", "k/b.md", "k/c/d.yaml", "x.yaml", "kk/e.yaml")]


@pytest.mark.parametrize(
    ("more", "names"),
    [
        ("", ["k/a.yaml", "k/b.md", "k/c/d.yaml", "kk/e.yaml", "x.yaml"]),
        (", path: k", ["a.yaml", "b.md", "c/d.yaml"]),
        (", path: k/a.yaml", ["a.yaml"]),
        (", path: k, include: ['*.yaml']", ["a.yaml", "c/d.yaml"]),
        (", path: k, exclude: ['c/*']", ["a.yaml", "b.md"]),
        (", include: ['k/?.yaml', 'x*'], exclude: [x.yaml]", ["k/a.yaml"]),
    ],
)
def test_files_are_picked_by_path_and_globs(more: str, names: list[str]) -> None:
    (item,) = vendor(f"into: a, {GIT}, ref: x{more}").items

    assert list(picked(item, FILES).files) == names


def test_nothing_picked_and_names_that_lead_out_are_refused() -> None:
    (item,) = vendor(f"into: a, {GIT}, ref: x, path: none").items
    with pytest.raises(Rejected, match=r"vendor\.yaml:4:3: nothing of"):
        picked(item, FILES)
    (item,) = vendor(f"into: a, {GIT}, ref: x").items
    for name in ("../x", "/x", "a\\b", "a\nb", "\udcff"):
        with pytest.raises(IntegrityError):
            picked(item, [(name, False, b"")])


def test_archives_have_bounds() -> None:
    assert (SOURCES.tar, SOURCES.entries, FILE) == (128 << 20, 20_000, 64 << 20)
    data = layer(entry("a/b", b"x" * 2000))
    assert [name for name, _, _ in archived(data)] == ["a/b"]
    with pytest.raises(IntegrityError, match="more than the 2000 bytes"):
        list(archived(data, limits=Limits(tar=2000)))
    with pytest.raises(IntegrityError, match="not a chart"):
        list(archived(layer(entry("a", b"x")), is_chart=True))


@pytest.fixture
def gits(tmp_path: Path) -> Iterator[Gits]:
    with Gits(tmp_path / "gits") as made:
        yield made


def fetch(gits: Gits, tmp_path: Path, name: str = "app", timeout: float = 300.0) -> GitFetch:
    private = tmp_path / "private"
    private.mkdir(exist_ok=True)
    return GitFetch(gits.address(name), private, Access("/usr/bin:/bin"), timeout=timeout)


def test_git_is_bounded_in_time_with_all_that_it_started(tmp_path: Path) -> None:
    """The pipe ends when nobody that was started has it open any more."""
    slow, pipe = tmp_path / "git", tmp_path / "pipe"
    slow.write_text(f"#!/bin/sh\nexec 3> {pipe}\nsleep 120 & sleep 120\n")
    slow.chmod(0o755)
    os.mkfifo(pipe)
    handle = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    with pytest.raises(Unavailable, match=r"git init did not end in 0\.5 s"):
        GitFetch("https://e.example/x", tmp_path, Access(f"{tmp_path}:/bin"), timeout=0.5)

    assert select.select([handle], [], [], 60) == ([handle], [], [])
    assert os.read(handle, 1) == b""
    os.close(handle)


def test_git_is_bounded_in_what_it_writes_and_answers(
    gits: Gits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = gits.commit("app", {"a": "a\n", "b": "b" * 100})
    asked = fetch(gits, tmp_path)
    asked.fetch(commit)
    with pytest.raises(Rejected, match="at most 1 with"):
        list(asked.files(commit, bool, Limits(entries=1)))
    with pytest.raises(Rejected, match="with 50 bytes"):
        list(asked.files(commit, bool, Limits(tar=50)))
    assert len(list(asked.files(commit, lambda name: name == "b", Limits(entries=1)))) == 1

    assert (fetching.DISK, fetching.LISTING, fetching.TIMEOUT) == (1 << 30, 256 << 20, 300.0)
    with pytest.raises(Rejected, match="git ls-tree answers more than 9 bytes"):
        asked._ask("ls-tree", commit, limit=9)
    monkeypatch.setattr(fetching, "DISK", 10)
    with pytest.raises(Rejected, match="more than 10 bytes at that commit"):
        asked.fetch(commit)


def test_a_repository_that_is_not_there_is_not_found(gits: Gits, tmp_path: Path) -> None:
    gits.commit("app", {"a": "a\n"})
    with pytest.raises(NotFound):
        fetch(gits, tmp_path, "none").commit("main")
    with pytest.raises(NotFound, match="no tag or branch 'v9'"):
        fetch(gits, tmp_path).commit("v9")


def test_without_git_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="git is not installed"):
        GitFetch("https://e.example/x", tmp_path, Access(str(tmp_path)))


def test_git_itself_speaks_no_other_protocol_than_that_of_the_address(
    gits: Gits, tmp_path: Path
) -> None:
    """Where a server sends it elsewhere, and whatever its address says."""
    gits.commit("app", {"a": "a\n"})
    with socket.create_server(("127.0.0.1", 0)) as other:
        gits.moved = f"https://127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(StoreError):
            fetch(gits, tmp_path, timeout=30.0).commit("main")
        other.settimeout(0)
        with pytest.raises(BlockingIOError):
            other.accept()
    for address in ("ext::sh -c x", "ssh://h.example/x", "file:///x", "https://u:p@h.example/x"):
        with pytest.raises(Misuse, match="https alone"):
            GitFetch(address, tmp_path, Access("/usr/bin:/bin"))


def test_a_password_is_on_no_command_line(
    gits: Gits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gits.commit("app", {"a": "a\n"})
    seen: list[list[str]] = []
    real = subprocess.Popen

    def popen(command: list[str], **more: object) -> object:
        seen.append(command)
        return real(command, **more)  # type: ignore[call-overload] # passed on as it is

    monkeypatch.setattr(subprocess, "Popen", popen)
    access = Access("/usr/bin:/bin", "Basic c2VjcmV0")
    GitFetch(gits.address("app"), tmp_path, access).commit("main")

    assert seen
    assert "c2VjcmV0" not in str(seen)
    assert "c2VjcmV0" not in repr(access)
    assert any("c2VjcmV0" in said for _, said in gits.seen)
