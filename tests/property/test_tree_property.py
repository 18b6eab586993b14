"""Laws of packing and of reading what others packed."""

from __future__ import annotations

import gzip
import itertools
import os
import random
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from tars import entry, layer, pax

from ocipack.errors import IntegrityError, Misuse
from ocipack.files.snapshot import snapshot
from ocipack.files.workspace import Workspace
from ocipack.tree.archive import COMPRESSIONS, Archive
from ocipack.tree.ignore import Matcher, defaults, parse
from ocipack.tree.tree import File, Tree, check_name
from ocipack.tree.unarchive import read

segments = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\")).filter(
    lambda s: s not in {"", ".", ".."} and len(s.encode()) <= 255
)
names = st.lists(segments, min_size=1, max_size=4).map("/".join) | st.sampled_from(
    ["a", "a-b", "a/b", "A", "x" * 100, "x" * 101, "p" * 155 + "/" + "n" * 100, "p" * 156 + "/n"]
)
contents = st.tuples(st.binary(max_size=1200), st.booleans())


def plain(found: dict[str, tuple[bytes, bool]]) -> Tree | None:
    try:
        return Tree({n: File.of(data, executable=x) for n, (data, x) in found.items()})
    except Misuse:
        return None  # one name is a directory of another


@given(st.dictionaries(names, contents, max_size=6), st.sampled_from(COMPRESSIONS), st.randoms())
def test_round_trip_and_order(
    found: dict[str, tuple[bytes, bool]], how: str, shuffle: random.Random
) -> None:
    tree = plain(found)
    if tree is None:
        return
    archive = Archive(tree, compression=how)
    data = b"".join(archive)
    shuffled = list(found)
    shuffle.shuffle(shuffled)
    again = Archive(Tree({name: tree.files[name] for name in shuffled}), compression=how)
    assert b"".join(again) == data
    entries = read([data], size=len(data), diff_id=archive.sums.diff_id)
    assert {e.name: (b"".join(e.content), e.executable) for e in entries} == found


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,3}(/[a-z]{1,3})?", fullmatch=True), contents, max_size=4
    ),
    st.sampled_from([0o000, 0o022, 0o027, 0o002, 0o077]),
    st.integers(0, 2**31),
)
def test_umask_and_times_never_reach_the_digest(
    found: dict[str, tuple[bytes, bool]], umask: int, mtime: int
) -> None:
    tree = plain(found)
    if tree is None:
        return
    wanted = Archive(tree)
    b"".join(wanted)
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        for name, file in reversed(list(tree.files.items())):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.read(limit=2000))
            path.chmod((0o777 if file.executable else 0o666) & ~umask)
            os.utime(path, (mtime, mtime))
        taken = Archive(snapshot(place).tree)
        b"".join(taken)
    assert taken.sums == wanted.sums


REAL = b"".join(
    [
        entry("./", kind=b"5"),
        entry("./a.yaml", b"kind: List\n"),
        pax(("path", "ü" * 60), ("mtime", "1.5")),
        entry("x", b"y" * 600),
        entry("d/", kind=b"5"),
        entry("d/e", b"", mode=b"0000755\0"),
        entry("L", b"l" * 120 + b"\0", kind=b"L", magic=b"ustar  \0"),
        entry("l", b"z", magic=b"ustar  \0"),
        bytes(1024),
    ]
)


@given(
    st.lists(st.tuples(st.integers(0, len(REAL) - 1), st.integers(0, 255)), max_size=4), st.data()
)
def test_a_mutated_tar_is_read_or_is_an_integrity_error(
    changes: list[tuple[int, int]], data: st.DataObject
) -> None:
    tar = bytearray(REAL)
    for at, value in changes:
        tar[at] = value
    if data.draw(st.booleans()):  # a right checksum lets the mutation through to later checks
        for start in range(0, len(tar), 512):
            block = tar[start : start + 512]
            if block[257:262] == b"ustar":
                block[148:156] = b" " * 8
                tar[start + 148 : start + 156] = b"%06o\0 " % sum(block)
    judged(gzip.compress(bytes(tar)))


@given(st.binary(max_size=2000))
def test_junk_is_an_integrity_error(junk: bytes) -> None:
    judged(junk)
    judged(gzip.compress(junk))
    judged(layer(junk + bytes(-len(junk) % 512)))


@given(st.integers(0, 400), st.integers(0, 255))
def test_a_mutated_gzip_is_read_or_is_an_integrity_error(at: int, value: int) -> None:
    data = bytearray(gzip.compress(REAL, mtime=0))
    data[at % len(data)] = value
    judged(bytes(data))


def judged(data: bytes) -> None:
    """Only good names come out, and only IntegrityError does."""
    with suppress(IntegrityError):
        for e in read([data], size=len(data)):
            check_name(e.name)
            assert len(b"".join(e.content)) == e.size


@given(st.dictionaries(st.from_regex(r"[a-z]{1,2}(/[a-z]{1,2}){0,3}", fullmatch=True), contents))
@settings(deadline=None, max_examples=40)
def test_a_tree_survives_the_file_system(found: dict[str, tuple[bytes, bool]]) -> None:
    tree = plain(found)
    if tree is None:
        return
    with Workspace() as work:
        again = snapshot(str(work.extract(tree.entries()))).tree
        assert {n: (f.read(limit=2000), f.executable) for n, f in again.files.items()} == found


@given(st.text("ab*?[]^-\\/! #.é\n", max_size=30), st.text("ab/.é", min_size=1, max_size=12))
def test_any_ignore_text_matches_or_does_not(text: str, name: str) -> None:
    matcher = Matcher(parse(text))
    if matcher(name, directory=True) and not matcher.takes_back:
        # so that directories that are left out need not be looked into
        assert matcher(f"{name}/below")
    assert isinstance(defaults(text)(name), bool)


globs = st.lists(
    st.sampled_from(["a", "b", "*", "?", "**", "/", "[a-b]", "[^a]", "\\*", ".x", "!", " ", "["]),
    min_size=1,
    max_size=5,
).map("".join)
short = st.text("ab*.x", min_size=1, max_size=3)


@given(
    st.lists(st.tuples(globs, st.sampled_from([(), ("a",), ("a", "b")])), max_size=6),
    st.lists(st.lists(short, min_size=1, max_size=4).map(tuple), max_size=12),
)
def test_what_is_remembered_of_names_decides_as_asking_every_pattern_does(
    lines: list[tuple[str, tuple[str, ...]]], paths: list[tuple[str, ...]]
) -> None:
    patterns = [pattern for text, domain in lines for pattern in parse(text, domain)]
    matcher = Matcher(patterns)
    for path, directory in itertools.product(paths, (False, True)):
        deciding = [p for p in patterns if p.matches(path, directory=directory)]
        found = matcher.decisive("/".join(path), directory=directory)
        assert found == (deciding[-1] if deciding else None)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_an_empty_tree_is_two_blocks(compression: str) -> None:
    data = b"".join(Archive(Tree({}), compression=compression))
    assert gzip.decompress(data) == bytes(1024)
