"""Laws of archives: hostile bytes raise only what we say, and what is written is read."""

from __future__ import annotations

import contextlib
import json
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from airgaps import Team, write
from hypothesis import example, given, settings, strategies as st

from ocipack.airgap.check import everything, is_list, parse
from ocipack.airgap.record import Record
from ocipack.airgap.site import Site
from ocipack.copy import Transfers
from ocipack.errors import IntegrityError, Misuse, NotFound, Rejected
from ocipack.oci.digest import Digest
from ocipack.oci.layout import Member
from ocipack.stores.layout.archive import Archive
from ocipack.stores.layout.stream import Stream
from ocipack.stores.layout.volumes import Checksums, volumes

REF_NAME = "org.opencontainers.image.ref.name"


@pytest.fixture(scope="module")
def archive() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "site.tar")
        write(path, Team().wanted, files={"keys/a.pub": b"key"})
        return path.read_bytes()


@contextlib.contextmanager
def placed(raw: bytes) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "site.tar")
        path.write_bytes(raw)
        yield path


def read(path: Path) -> None:
    with Archive(path) as files, Transfers() as transfers:
        files.check()
        site = Site(files)
        everything(site, transfers)
        for name in site.papers:
            site.paper(name)


edits = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=6
)


@settings(max_examples=150, deadline=None)
@given(edits, st.floats(0, 1), st.binary(max_size=600))
def test_hostile_bytes_raise_only_what_we_say(
    archive: bytes, changes: list[tuple[float, int]], kept: float, tail: bytes
) -> None:
    raw = bytearray(archive)
    for place, value in changes:
        raw[int(place * len(raw))] = value
    for data in (bytes(raw), archive[: int(kept * len(archive))] + tail):
        with placed(data) as path, contextlib.suppress(IntegrityError):
            read(path)


names = st.sampled_from(
    [
        *(
            "registry.example/app:v1",
            "a.example:5000/x@sha256:" + "0" * 64,
            "v1",
            "",
            "ocipack-airgap",
        ),
        *(
            "sha256-" + "0" * 64,
            "sha256-" + "0" * 64 + ".sig",
            "a.example/x:sha256-" + "1" * 64 + ".att",
        ),
        *("../x", "docker.io/library/x", "registry.example/app:v1@sha256:" + "1" * 64),
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_hostile_index_raises_only_what_we_say(archive: bytes, data: st.DataObject) -> None:
    with placed(archive) as path:
        with tarfile.open(path) as tar:
            found = {m.name: tar.extractfile(m).read() for m in tar}  # type: ignore[union-attr] # all are files
        document = json.loads(found["index.json"])
        entries = document["manifests"]
        sealed = data.draw(st.booleans())
        if not sealed:  # as another tool makes one: nothing says what names there were
            entries.pop()
        good = list(entries)
        for _ in range(data.draw(st.integers(1, 4))):
            entry = dict(data.draw(st.sampled_from(good)))
            kind = data.draw(st.sampled_from(["name", "drop", "swap", "junk"]))
            if kind == "name":
                entry["annotations"] = {REF_NAME: data.draw(names)}
            elif kind == "drop":
                entry.pop(data.draw(st.sampled_from(sorted(entry))))
            elif kind == "swap":
                other = data.draw(st.sampled_from(good))
                entry |= {key: other[key] for key in ("digest", "size") if key in other}
            else:
                entry = data.draw(st.dictionaries(st.text(max_size=4), st.none() | st.integers()))
            entries.append(entry)
        found["index.json"] = json.dumps(document).encode()
        members = [Member(name, Digest.of(raw), len(raw)) for name, raw in found.items()]
        with Stream(path, replace=True) as out:
            out.begin(members)
            for raw in found.values():
                out.put([raw])
        expected = pytest.raises(IntegrityError) if sealed else contextlib.suppress(Rejected)
        with expected:
            read(path)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=3000), max_size=8), st.sampled_from([0, 512, 1000, 4096]))
def test_what_is_written_is_read(contents: list[bytes], volume: int) -> None:
    found = {f"blobs/sha256/{Digest.of(raw).hex}": raw for raw in contents}
    files = {"oci-layout": b"{}", "index.json": b"{}", **found}
    members = [Member(name, Digest.of(raw), len(raw)) for name, raw in files.items()]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "site.tar")
        with Stream(path, volume=volume) as out:
            out.begin(members)
            for raw in files.values():
                out.put([raw[:7], raw[7:]])
        assert out.files == volumes(path)[0]
        with Archive(path) as archive:
            archive.check()
            assert archive.size == out.size
            for name, raw in files.items():
                assert b"".join(archive.read(name)) == raw
            assert archive.blobs == {Digest.of(raw): len(raw) for raw in found.values()}


@given(st.binary(max_size=5000), st.integers(0, 700), st.lists(st.integers(1, 900), max_size=9))
def test_checksums_do_not_depend_on_the_pieces(raw: bytes, volume: int, cuts: list[int]) -> None:
    whole, parts = Checksums(volume), Checksums(volume)
    whole.update(raw)
    at = 0
    for cut in cuts:
        parts.copy().update(raw[at : at + cut])  # a copy is on its own
        parts.update(raw[at : at + cut])
        at += cut
    parts.update(raw[at:])
    assert parts.all() == whole.all()
    assert parts.size == len(raw)


@given(st.binary(max_size=300))
@example(b"ocipack-airgap sha256:" + b"0" * 64 + b"\n")
def test_hostile_lists_and_records(raw: bytes) -> None:
    with contextlib.suppress(Misuse):
        parse(b"ocipack-airgap " + raw, "list")
    assert is_list(b"ocipack-airgap " + raw)
    with contextlib.suppress(IntegrityError):
        Record.decode(raw)


def test_no_other_error_is_a_kind_of_those() -> None:
    """What is suppressed above would hide nothing else."""
    assert issubclass(IntegrityError, Rejected)
    assert not issubclass(NotFound, Rejected)
