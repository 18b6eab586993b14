"""What docs/policy.md shows is read as it says, and the schema agrees with the reader."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest
from policies import AUTHORITIES, FLIPS, SCHEMA, WRONG, find, plain, spec

from ocipack.errors import Misuse
from ocipack.k8s.yaml.nodes import compose
from ocipack.trust.policy import Policy, cases
from ocipack.trust.policy.decision import ask, verdict
from ocipack.trust.policy.reader import read

DOCS = Path(__file__).parents[2] / "docs"
BLOCKS = re.findall(r"```yaml\n(.*?)```", (DOCS / "policy.md").read_text(), re.DOTALL)


def test_the_policy_in_the_docs_passes_its_test() -> None:
    policy_text, cases_text = BLOCKS
    SCHEMA.validate(plain(compose(policy_text.encode()).root))
    policies = read(policy_text.encode(), file="policy.md", key=find)
    given = cases.read(cases_text.encode(), file="cases", key=find)
    assert given.today == date(2026, 11, 30)
    policy = Policy(policies=policies, today=given.today)
    assert [case.expect for case in given.cases] == ["verified", "exempted"]
    for case in given.cases:
        assert verdict(ask(policy, case.reference), case.evidence) == case.expect


@pytest.mark.parametrize("text", sorted({flip[n] for flip in FLIPS for n in (1, 2)}))
def test_the_schema_takes_what_the_reader_takes(text: str) -> None:
    SCHEMA.validate(spec(text))


NOT_FOR_SCHEMAS = ("given twice", "anchor", "tag", "every reader", "no such key", "not a ")
"""What a schema cannot see: YAML's own traps, other files, and the syntax of names and versions."""


@pytest.mark.parametrize(("line", "words"), [(row[0], row[2]) for row in WRONG])
def test_the_schema_refuses_what_the_reader_refuses(line: str, words: str) -> None:
    if any(said in words for said in NOT_FOR_SCHEMAS) or "*soon" in line:
        return
    text = f"images: ['**']\nauthorities: [{{keys: [{{file: a.pub}}]}}]\n{line}"
    assert not SCHEMA.is_valid(spec(text)), text


@pytest.mark.parametrize(("authority", "words"), AUTHORITIES)
def test_the_schema_refuses_what_is_no_authority(authority: str, words: str) -> None:
    beyond = (*NOT_FOR_SCHEMAS, "different key", "neither signature", "is no attestation")
    if any(said in words for said in beyond) or words in ("key", "unsupported value"):
        return
    assert not SCHEMA.is_valid(spec(f"images: ['**']\nauthorities:\n  - {authority}"))


CASES = "apiVersion: ocipack.dev/v1alpha1\nkind: PolicyTest\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cases: []", "cases is empty"),
        ("{}", "a second document"),
        ("cases: [{}]", "a case has no image"),
        ("cases: [{image: a}]", "a case has no expect"),
        ("cases: [{image: a, expect: good}]", "expect is one of verified, exempted, rejected"),
        ("cases: [{image: A, expect: verified}]", "not an image reference"),
        ("cases: [{image: a, expect: verified, keys: []}]", "unknown field 'keys'"),
        ("cases: [{image: a, expect: verified, signatures: [{}]}]", "has no key"),
        ("today: soon\ncases: [{image: a, expect: verified}]", "is no date"),
        ("cases: [{image: a, expect: verified, attestations: [{key: a}]}]", "no predicateType"),
    ],
)
def test_what_are_no_cases(text: str, words: str) -> None:
    whole = text if text == "{}" else CASES + text
    with pytest.raises(Misuse, match=r"^c.yaml:") as caught:
        cases.read(whole.encode(), file="c.yaml", key=find)
    assert words in str(caught.value) or text == "{}"
