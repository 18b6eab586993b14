"""ClusterImagePolicies, good, odd and wrong: each is read as its row says, or refused by place."""

from __future__ import annotations

import textwrap

import pytest
from cluster_image_policies import HEAD, KEYED, ONE, READ, REFUSED

from ocipack.errors import Misuse
from ocipack.oci.reference import Reference
from ocipack.trust.keys import PublicKey
from ocipack.trust.policy import Policy, VerificationPolicy
from ocipack.trust.policy.decision import Evidence, ask, verdict
from ocipack.trust.policy.reader import read


def none(name: str) -> PublicKey:
    raise AssertionError(f"a ClusterImagePolicy names no files: {name}")


def load(spec: str, head: str = "") -> VerificationPolicy:
    head = head or HEAD + "metadata: {name: images}\n"
    text = f"{head}spec:\n{textwrap.indent(spec.strip(), '  ')}\n"
    [found] = read(text.encode(), file="cip.yaml", key=none)
    return found


@pytest.mark.parametrize(
    ("spec", "name", "evidence", "expected"), [row[1:] for row in READ], ids=[r[0] for r in READ]
)
def test_what_is_read(spec: str, name: str, evidence: tuple[Evidence, ...], expected: str) -> None:
    question = ask(Policy(policies=(load(spec),)), Reference.parse(name))
    assert verdict(question, evidence) == expected


@pytest.mark.parametrize(
    ("spec", "words"), [row[1:] for row in REFUSED], ids=[r[0] for r in REFUSED]
)
def test_what_is_refused(spec: str, words: str) -> None:
    with pytest.raises(Misuse, match=r"^cip.yaml:[0-9]+:[0-9]+: ") as caught:
        load(f"images: [{{glob: '**'}}]\n{spec}")
    assert words in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize(
    "images",
    [
        "[{glob: ''}]",
        "[{}]",
        "[]",
        "[{glob: 'a b'}]",
        "[{glob: 'a@b'}]",
        "[{glob: '(a+)+'}]",
        "[r.example.com/app]",
        "[{glob: a, tag: b}]",
    ],
)
def test_what_covers_nothing(images: str) -> None:
    with pytest.raises(Misuse, match=r"^cip.yaml:"):
        load(f"images: {images}\nauthorities: [{{{KEYED}}}]")


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("apiVersion: policy.sigstore.dev/v1alpha1\nkind: ClusterImagePolicy\n", "is no policy"),
        ("apiVersion: policy.sigstore.dev/v1beta1\nkind: TrustRoot\n", "is no policy"),
        (
            HEAD + "metadata: {name: a, namespace: b}\n",
            "unknown field 'namespace'",
        ),
        (
            HEAD + "metadata: {}\n",
            "has no name",
        ),
    ],
)
def test_what_is_another_object(head: str, words: str) -> None:
    with pytest.raises(Misuse) as caught:
        load(ONE, head)
    assert words in str(caught.value)


def test_labels_say_nothing_about_images() -> None:
    head = HEAD + "metadata: {name: a, labels: {b: c}, annotations: {d: e}}\n"
    assert load(ONE, head).name == "a"


def test_there_are_enough_of_them() -> None:
    assert len(READ) + len(REFUSED) >= 40
    titles = [row[0] for row in READ] + [row[0] for row in REFUSED]
    assert [int(title.split()[0]) for title in titles] == list(range(1, 49))
