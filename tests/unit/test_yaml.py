"""The YAML reader: limits, positions, what is refused, and numbers as Go reads them."""

from __future__ import annotations

from typing import Any

import pytest

from ocipack.errors import IntegrityError, Misuse
from ocipack.k8s.yaml import documents as streams, events, limits, values
from ocipack.k8s.yaml.documents import Document, join, read, split
from ocipack.k8s.yaml.scalars import Dialect

KUBECTL, FLUX = Dialect.KUBECTL, Dialect.FLUX


def one(text: str, dialect: Dialect = FLUX, **options: Any) -> Any:
    (document,) = read(text.encode(), dialect, **options)
    return document.value


def refusal(text: str | bytes, dialect: Dialect = FLUX, **options: Any) -> str:
    data = text.encode() if isinstance(text, str) else text
    with pytest.raises(IntegrityError) as caught:
        list(read(data, dialect, **options))
    return str(caught.value)


# Each row was seen with kubectl 1.37.1: `kubectl label --local` and `kubectl kustomize`.
SCALARS: list[tuple[str, Any, Any]] = [
    ("0o17", 15, 15),
    ("+0o7", 7, 7),
    ("-0x1F", -31, -31),
    ("0b11", 3, 3),
    ("010", 8, 8),
    ("00", 0, 0),
    ("089", 89, 89),
    ("08.5", 8.5, 8.5),
    ("1.", 1, 1),
    (".5", 0.5, 0.5),
    ("1.e3", 1000, 1000),
    ("-1_0.5_0e1", -105, -105),
    ("_1", "_1", "_1"),
    ("1__0", 10, 10),
    ("0x_F", 15, 15),
    ("1e", "1e", "1e"),
    (".e3", ".e3", ".e3"),
    ("+", "+", "+"),
    (".", ".", "."),
    ("-0.0", 0, 0),
    ("1e400", "1e400", "1e400"),
    ("1e20", 1e20, 1e20),
    ("1000000000000000001.0", 1000000000000000000, 1000000000000000000),
    ("0xFFFFFFFFFFFFFFFFFF", "0xFFFFFFFFFFFFFFFFFF", "0xFFFFFFFFFFFFFFFFFF"),
    ("-0xFFFFFFFFFFFFFFFFFF", "-0xFFFFFFFFFFFFFFFFFF", "-0xFFFFFFFFFFFFFFFFFF"),
    ("0777777777777777777777777", 7.777777777777778e23, 7.777777777777778e23),
    ("-9223372036854775808", -9223372036854775808, -9223372036854775808),
    ("0xFFFFFFFFFFFFFFFF", 1.8446744073709552e19, 1.8446744073709552e19),
    ("!!omap [a: b]", [{"a": "b"}], [{"a": "b"}]),
    ("!!foo x", "x", "x"),
    ("9223372036854775807", 9223372036854775807, 9223372036854775807),
    ("9" * 5000, "9" * 5000, "9" * 5000),
    ("Yes", True, "Yes"),
    ("oN", "oN", "oN"),
    ("tRue", "tRue", "tRue"),
    ("nUll", "nUll", "nUll"),
    ("NULL", None, None),
    ("2024-1-2", "2024-1-2", "2024-01-02T00:00:00Z"),
    ("2024-02-29", "2024-02-29", "2024-02-29T00:00:00Z"),
    ("2023-02-29", "2023-02-29", "2023-02-29"),
    ("2024-13-45", "2024-13-45", "2024-13-45"),
    ("2024-04-31", "2024-04-31", "2024-04-31"),
    ("0000-01-01", "0000-01-01", "0000-01-01T00:00:00Z"),
    ("+2024-01-02", "+2024-01-02", "+2024-01-02"),
    ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z"),
    ("!!str 12", "12", "12"),
    ("!!str", "", ""),
    ("!foo 12", "12", "12"),
    ("!foo", "", ""),
    ("! 12", "12", 12),
    ('! "12"', "12", "12"),
    ('!!int "0x1F"', 31, 31),
    ("!!float 1", 1, 1),
    ("!!null", None, None),
    ("!!timestamp 2024-01-02", "2024-01-02", "2024-01-02T00:00:00Z"),
    ("!!timestamp 2024-01-02 1:2:3", "2024-01-02 1:2:3", "2024-01-02 1:2:3"),
    ("!!seq [a]", ["a"], ["a"]),
    ("!!set {a, b}", {"a": None, "b": None}, {"a": "", "b": ""}),
    ("[~, {a: }]", [None, {"a": None}], [None, {"a": ""}]),
    ("'\\0'", "\\0", "\\0"),
    ('"\\0"', "\0", "\0"),
]


@pytest.mark.parametrize(("text", "kubectl", "flux"), SCALARS, ids=[s[0][:40] for s in SCALARS])
def test_values_as_both_tools_read_them(text: str, kubectl: Any, flux: Any) -> None:
    for dialect, wanted in ((KUBECTL, kubectl), (FLUX, flux)):
        found = one(f"v: {text}", dialect)["v"]
        assert found == wanted
        assert type(found) is type(wanted)


KEYS = [
    ("{1000000.0: a}", "1e+06"),
    ("{12345678.0: a}", "1.2345678e+07"),
    ("{123456789.5: a}", "1.2345679e+08"),
    ("{1e-5: a}", "1e-05"),
    ("{1e-4: a}", "0.0001"),
    ("{1.0e3: a}", "1000"),
    ("{1e20: a}", "1e+20"),
    ("{.5: a}", "0.5"),
    ("{.inf: a}", ".inf"),
    ("{-1: a}", "-1"),
    ("{0x10: a}", "16"),
    ("{y: a}", "true"),
    ("{No: a}", "false"),
    ("{2024-01-02: a}", "2024-01-02"),
    ("{!!int 1: a}", "1"),
    ("{!foo c: a}", "c"),
]


@pytest.mark.parametrize(("text", "key"), KEYS)
def test_keys_that_are_not_text_in_kubectl(text: str, key: str) -> None:
    assert list(one(text, KUBECTL)) == [key]


@pytest.mark.parametrize(
    "text", ["{1: a}", "{true: a}", "{2024-01-02: a}", "{.5: a}", "{null: a}", "{!foo c: a}"]
)
def test_keys_that_are_not_text_in_kustomize(text: str) -> None:
    assert "is not text to kustomize" in refusal(text)


def test_odd_keys_that_both_tell_apart() -> None:
    assert one("{? : x}") == {"": "x"}
    assert "not a map key" in refusal("{? : x}", KUBECTL)
    assert "not a map key" in refusal("{9223372036854775808: e}", KUBECTL)
    assert "not a map key" in refusal("{1e300: e}", KUBECTL)
    assert one("{a: &b c, *b : d}") == {"a": "c", "c": "d"}
    assert "unrendered template" in _hint("a: {{ .Values.x }}")


def _hint(text: str) -> str:
    with pytest.raises(IntegrityError) as caught:
        list(read(text.encode(), FLUX))
    return caught.value.hint


MERGES = [
    ("{b: 2, <<: {b: 1, a: 1}}", {"b": 1, "a": 1}, {"b": 2, "a": 1}),
    ("{<<: {b: 1}, b: 2}", {"b": 2}, {"b": 2}),
    ("{<<: [{a: 1}, {a: 2, c: 3}]}", {"a": 1, "c": 3}, {"a": 1, "c": 3}),
    ("{!!merge <<: {b: c}}", {"b": "c"}, {"b": "c"}),
]


@pytest.mark.parametrize(("text", "kubectl", "flux"), MERGES)
def test_merge_keys(text: str, kubectl: Any, flux: Any) -> None:
    assert one(text, KUBECTL, strict=False) == kubectl
    assert one(text, FLUX) == flux


def test_merge_keys_that_are_none() -> None:
    assert one("{'<<': {a: b}}", KUBECTL) == {"<<": {"a": "b"}}
    assert "quoted '<<'" in refusal("{'<<': {a: b}}")
    assert one('{"\\0<<": {a: b}}') == {"\0<<": {"a": "b"}}
    assert one("{v: <<}") == {"v": "<<"}
    assert "needs a mapping" in refusal("{<<: 1}")
    assert "two merge keys" in refusal("{<<: {a: 1}, <<: {b: 1}}")


def test_bad_tags() -> None:
    for text in ("!!int abc", "!!int 1.0", "!!float abc", "!!null foo", "!!bool yes"):
        assert "cannot decode" in refusal(f"v: {text}")
    assert one("v: !!bool yes", KUBECTL) == {"v": True}
    assert "not base64" in refusal("v: !!binary a")
    assert "not text" in refusal("v: !!binary ////")
    assert "!!timestamp" in refusal("v: !!timestamp foo")


def test_keys_given_twice() -> None:
    assert refusal("a: 1\nb:\n  c: 1\n  c: 2\n") == "line 4, column 3: key 'c' is given twice"
    assert refusal("{a: 1, 'a': 2}", KUBECTL).endswith("key 'a' is given twice")
    assert one("{a: 1, 'a': 2}", KUBECTL, strict=False) == {"a": 2}
    assert "given twice" in refusal('{"a": 1, "a": 2}', KUBECTL)
    many = ",".join(f'"k{number}":0' for number in range(100_000))  # hours, if each asks all others
    assert "given twice" in refusal(f'{{{many},"k99999":0}}', KUBECTL)


def test_places_count_from_the_top_of_the_stream() -> None:
    text = "a: 1\n--- # second\nb: 1\nc: [\n"
    assert refusal(text, name="dir/x.yaml").startswith("dir/x.yaml:5:1: not YAML")
    assert refusal("a: 1\n---\nv: .inf\n").startswith("line 3, column 4: unsupported value")
    assert refusal("a: *b").startswith("line 1, column 4: unknown anchor 'b'")
    assert refusal("a: 1\n--- x\n") == "line 2, column 1: not a document separator: '--- x'"
    assert refusal(b"a: 1\nb: '\xff'\n").startswith("line 2, column 5: not YAML")
    assert refusal(b"a: 1\nb: '\xff'\n", KUBECTL) == "line 2, column 5: bytes that are not UTF-8"


def test_what_would_be_lost_in_silence() -> None:
    text = "a: 1\n...\nb: 2\n"
    assert one(text, strict=False) == {"a": 1}
    assert "second document without '---'" in refusal(text)
    assert "second document" in refusal('{"a": 1}{"b": 2}')
    assert one('{"a": 1}{"b": 2}', strict=False) == {"a": 1}


def test_json_as_kubectl_reads_it() -> None:
    found = [d.value for d in read(b' {"a": 1.0, "b": 1e400}\n{"c": 12}{}', KUBECTL)]
    assert found == [{"a": 1, "b": float("inf")}, {"c": 12}, {}]
    assert one('{"v": "\\ud83d\\ude00"}', KUBECTL) == {"v": "\U0001f600"}
    assert one("{a: b}", KUBECTL) == {"a": "b"}
    assert "not JSON" in refusal('{"a": 1} {"b"', KUBECTL)
    big = one('{"v": 9223372036854775808, "w": 9223372036854775807, "x": 0}', KUBECTL)
    assert big == {"v": 9.223372036854775808e18, "w": 9223372036854775807, "x": 0}


def test_the_first_line_may_be_a_document_to_kustomize() -> None:
    assert one("--- {a: b}") == {"a": "b"}
    assert "separator" in refusal("--- {a: b}", KUBECTL)


def test_documents_keep_their_places() -> None:
    found = list(read(b"---\n# none\n---\na: 1\n---\n\n---\nnull\n---\nb:\n  - c: {d: e}\n", FLUX))
    assert [(d.index, d.line, d.value) for d in found] == [
        (1, 4, {"a": 1}),
        (4, 10, {"b": [{"c": {"d": "e"}}]}),
    ]
    assert found[1].locate("/b/0/c/d") == (11, 12)
    assert found[1].locate("/b/0/c/x") == (11, 8)  # the nearest thing that is there
    assert found[1].locate("") == (10, 1)
    assert found[1].text("/b/0/c/d") == "e"
    assert found[1].text("/b/0") is None
    assert found[1].text("/x") is None


def test_pointers() -> None:
    assert join("a/b", "c~d", 0) == "/a~1b/c~0d/0"
    assert split("/a~1b/c~0d/0") == ("a/b", "c~d", "0")
    document = Document({"a/b": 1}, 0, 1, b"a/b: 1")
    assert document.locate(join("a/b")) == (1, 6)


def test_depth() -> None:
    assert one("[" * limits.DEPTH + "]" * limits.DEPTH)
    assert "nested deeper than 200" in refusal("[" * 201 + "]" * 201)
    assert "YAML" in refusal("[" * 20_000)


def test_a_stack_that_is_used_up_already() -> None:
    def deeper(n: int) -> str:
        return deeper(n - 1) if n else refusal("[" * 199 + "]" * 199)

    assert "nested too deeply" in deeper(600)


def test_aliases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ALIASED_NODES", 8)
    assert one("a: &x [1, 2, 3]\nb: [*x, *x]") == {"a": [1, 2, 3], "b": [[1, 2, 3]] * 2}
    assert "aliases add more than 8 nodes" in refusal("a: &x [1, 2, 3]\nb: [*x, *x, *x]")
    assert "contains itself" in refusal("a: &x [*x]")


def test_an_alias_bomb_is_cheap() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    for dialect in Dialect:
        assert "aliases add more" in refusal("\n".join(lines), dialect)


def test_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BYTES", 4)
    assert one("a: 1") == {"a": 1}
    assert "more than 4 bytes" in refusal("a: 12")
    monkeypatch.setattr(limits, "BYTES", 100)
    monkeypatch.setattr(limits, "DOCUMENTS", 2)
    assert len(list(read(b"a: 1\n---\nb: 1\n", FLUX))) == 2
    assert "more than 2 documents" in refusal("a: 1\n---\nb: 1\n---\n")


def test_remembering_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MEMO", 10)
    for dialect in Dialect:
        memos = values._MEMOS[dialect]
        found = one("\n".join(f"key{n}: 0x{n:x}" for n in range(100)), dialect)
        assert found == {f"key{n}": n for n in range(100)}
        assert all(len(memo) <= 10 for memo in memos)


def test_without_libyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "CParser", None)
    with pytest.raises(Misuse, match="without libyaml"):
        list(read(b"a: 1", FLUX))


def test_pythons_own_loaders_are_used_nowhere() -> None:
    for module in (events, values, streams):
        assert not [name for name in vars(module) if name.endswith("Loader")]
