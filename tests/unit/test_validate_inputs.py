"""Which files are manifests, and the engine's bookkeeping."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pytest

from ocipack.errors import IntegrityError, Unavailable
from ocipack.project import FILE
from ocipack.report import Finding, Severity
from ocipack.tree import ignore
from ocipack.validate.cache import Cache, Keys
from ocipack.validate.engine import engine
from ocipack.validate.inputs import PROJECT, sort_out
from ocipack.validate.options import Options
from ocipack.validate.run import Done, Run, Task
from ocipack.validate.sources import PARTED, Source
from ocipack.validate.together import Validation
from ocipack.validate.verdict import Known, Shape, Verdict


def test_names_that_source_controller_leaves_out_are_all_looked_at() -> None:
    lists = (*ignore.VCS, *ignore.CI, *ignore.EXTRA, *ignore.EXTENSIONS)
    for pattern in lists:
        bare = pattern.removeprefix("**/").replace("*", "x")
        for name in (bare.rstrip("/") + "/a.yaml", f"d/{bare.rstrip('/')}/a.yaml", bare):
            names = [name] if name.endswith((".yaml", ".yml")) else []
            left_out = {found for found, _ in ignore.dropped(names, {})}
            assert set(sort_out(names, lambda _: b"").skipped) == left_out, pattern


def test_an_ignore_file_of_the_tree_decides() -> None:
    names = ["a.yaml", "b.yaml", "d/.sourceignore", "d/c.yaml"]
    found = sort_out(names, {"d/.sourceignore": b"c.yaml\n"}.__getitem__)
    assert (found.manifests, list(found.skipped)) == (["a.yaml", "b.yaml"], ["d/c.yaml"])


def test_charts() -> None:
    names = [
        *("Chart.yaml", "templates/a.yaml", "crds/a.yaml", "values-x.yaml"),
        *("charts/sub/Chart.yaml", "charts/sub/templates/b/c.yaml", "other/templates/a.yaml"),
    ]
    assert sort_out(names, lambda _: b"").manifests == ["crds/a.yaml", "other/templates/a.yaml"]
    names = ["x/Chart.yaml", "x/templates/a.yaml", "xy/templates/a.yaml"]
    assert sort_out(names, lambda _: b"").manifests == ["xy/templates/a.yaml"]


def test_the_project_file_has_one_name() -> None:
    assert PROJECT == FILE


def here(
    tasks: Iterable[Task],
    work: Callable[[Task], Done],
    meanwhile: Callable[[], None],
    _size: int,
) -> Iterator[Done]:
    meanwhile()
    yield from map(work, tasks)


def judged(*files: bytes | Exception, cache: Cache | None = None) -> Validation:
    def opener(content: bytes | Exception) -> Iterator[bytes]:
        if isinstance(content, Exception):
            raise content
        for start in range(0, len(content), 4096):
            yield content[start : start + 4096]

    sources = [
        Source(f"{n}.yaml", lambda content=content: opener(content), named=True)  # type: ignore[misc]  # bound now
        for n, content in enumerate(files)
    ]
    return Run(Options(), engine(list), here, cache=cache).judge(sources)


def config(name: str, more: str = "") -> bytes:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n{more}".encode()


def test_parts_of_a_source_have_the_verdict_of_the_whole() -> None:
    documents = [config(f"a{n}", "dta: {}\n" if n % 7 == 0 else "") for n in range(40)]
    small = judged(b"---\n".join(documents))
    padding = b"#" * 8000 + b"\n"
    text = b"---\n".join(padding + document for document in documents)
    assert len(text) > PARTED
    large = judged(text)
    assert (large.documents, large.objects) == (small.documents, small.objects) == (40, 40)
    assert [f.message for f in large.findings] == [f.message for f in small.findings]
    lines = [finding.line for finding in large.findings]
    assert lines == [5 * n + n // 7 + 5 for n in range(0, 40, 7)]


def test_the_same_object_twice() -> None:
    found = judged(config("a") + b"---\n" + config("a"), config("b"), config("b")).findings
    assert [(f.file, f.line, f.severity) for f in found] == [
        ("0.yaml", 5, Severity.ERROR),
        ("2.yaml", 1, Severity.WARNING),
    ]


def test_what_cannot_be_read_is_said_and_stops_nothing() -> None:
    found = judged(config("a"), Unavailable("gone", hint="wait"), config("b"))
    assert found.objects == 2
    assert [(f.file, f.rule, f.message, f.hint) for f in found.findings] == [
        ("1.yaml", "file-unreadable", "gone", "wait")
    ]


def test_a_missing_schema_is_said_once() -> None:
    text = b"apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: %s}\n"
    found = judged(text % b"a", text % b"b" + b"---\n" + text % b"c")
    assert [(f.file, f.rule) for f in found.findings] == [("0.yaml", "schema-missing")]
    assert found.missing == {"example.com/v1 Thing": 3}


CRD = b"""\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: %s}}}}
"""
THING = b"apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec: {}\n"


def test_what_a_definition_gets_wrong_is_found_with_it_and_not_kept_elsewhere() -> None:
    kept: dict[str, bytes] = {}
    cache = Cache(kept.get, kept.__setitem__)
    first = judged(THING, CRD % b"nonsense", cache=cache)
    assert ("1.yaml", "crd-invalid") in {(f.file, f.rule) for f in first.findings}
    again = judged(THING, CRD % b"nonsense", cache=cache)
    assert {(f.file, f.rule) for f in again.findings} == {(f.file, f.rule) for f in first.findings}
    assert again.cached >= 1


def test_another_definition_is_another_key() -> None:
    kept: dict[str, bytes] = {}
    cache = Cache(kept.get, kept.__setitem__)
    assert not judged(THING, CRD % b"object", cache=cache).cached
    assert judged(THING, CRD % b"object", cache=cache).cached == 2
    assert not judged(THING, CRD % b"string", cache=cache).cached


@pytest.mark.parametrize(
    "other",
    [
        Keys.of(Options(kubernetes="1.30"), []),
        Keys.of(Options(require_schema=True), []),
        Keys.of(Options(skip=("Pod",)), []),
        Keys.of(Options(), [b"x"]),
    ],
)
def test_keys_differ_by_all_that_decides(other: Keys) -> None:
    same = Keys.of(Options(), [])
    assert other.key(b"c", named=True) != same.key(b"c", named=True)
    assert same.key(b"c", named=True) != same.key(b"d", named=True) != same.key(b"d", named=False)


def test_a_verdict_comes_back_as_it_was() -> None:
    verdict = Verdict(Shape.MANIFEST, 2, 1, [Known("g", "k", "", "n", "g/v1", 3)])
    verdict.findings = [Finding("r", "m", Severity.NOTE, line=1, column=2, pointer="/a", hint="h")]
    verdict.missing["g/v1 k"] = 1
    assert Verdict.load(verdict.dump()) == verdict


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b'["manifest",0,0,[[1]],[],{}]', b"\xff"])
def test_what_is_no_verdict_is_refused(data: bytes) -> None:
    with pytest.raises(IntegrityError):
        Verdict.load(data)


def test_an_entry_under_another_key_is_not_there() -> None:
    kept: dict[str, bytes] = {}
    cache = Cache(kept.get, kept.__setitem__)
    cache.keep("a", Verdict())
    kept["b"] = kept["a"]
    assert cache.find("a") == Verdict()
    assert cache.find("b") is None
