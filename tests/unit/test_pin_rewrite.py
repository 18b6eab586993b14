"""What a file becomes, and what is left as it was because something else would change."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from ocipack.k8s import edit
from ocipack.k8s.yaml import limits
from ocipack.oci.digest import Digest
from ocipack.pin.rewrite import ELSEWHERE, Rewritten, rewrite
from ocipack.pin.scan import Status, scan

DIGEST = Digest("sha256", "12" * 32)


def rewritten(text: str, name: str = "f.yaml") -> tuple[str, Rewritten]:
    data = textwrap.dedent(text).encode()
    made = scan([name], lambda _: data)
    wanted = {one: DIGEST for one in made.found if one.status is Status.OPEN and one.counts}
    new = rewrite(made.pages[name], wanted)
    return new.data.decode(), new


def pinned(text: str) -> str:
    return textwrap.dedent(text).replace("@D", f"@{DIGEST}").replace("=D", str(DIGEST))


RELEASE = """\
    apiVersion: helm.toolkit.fluxcd.io/v2
    kind: HelmRelease
    spec:
      values:
"""
POD = """\
    apiVersion: v1
    kind: Pod
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            RELEASE + "        image: {repository: r.io/a, tag: v1}\n",
            RELEASE + "        image: {repository: r.io/a, tag: v1@D}\n",
        ),
        (
            RELEASE + "        image: {repository: r.io/a, tag: 1.25} # x\n",
            RELEASE + '        image: {repository: r.io/a, tag: "1.25@D"} # x\n',
        ),
        (
            RELEASE + "        image: {repository: r.io/a, tag: v1, digest: ''}\n",
            RELEASE + "        image: {repository: r.io/a, tag: v1, digest: '=D'}\n",
        ),
        (
            RELEASE + "        image: {repository: r.io/a, tag: v1, digest: }\n",
            RELEASE + "        image: {repository: r.io/a, tag: v1, digest: =D}\n",
        ),
        (
            RELEASE
            + "        i:\n          digest: # x\n          tag: v1\n          image: r.io/a\n",
            RELEASE
            + "        i:\n          digest: =D # x\n          tag: v1\n          image: r.io/a\n",
        ),
        (
            RELEASE + "        image: {repository: r.io/a, tag: v1, digest: ~}\n",
            RELEASE + "        image: {repository: r.io/a, tag: v1@D, digest: ~}\n",
        ),
        (
            RELEASE + "        image: {registry: r.io, repository: a, tag: v1}\n",
            RELEASE + "        image: {registry: r.io, repository: a, tag: v1@D}\n",
        ),
        (
            POD + "    spec: {containers: [{image: nginx}, {args: [--x-image=b/c]}]}\n",
            POD + "    spec: {containers: [{image: nginx:latest@D}, {args: [--x-image=b/c]}]}\n",
        ),
        (
            POD + "    spec: {containers: [{args: ['--x-image=b/c:1']}]}\n",
            POD + "    spec: {containers: [{args: ['--x-image=b/c:1@D']}]}\n",
        ),
        ("images: [{name: a, newTag: 706798e8}]\n", 'images: [{name: a, newTag: "706798e8@D"}]\n'),
        (
            "images:\n- name: a\n  newTag: '1' # keep\n",
            "images:\n- name: a\n  newTag: '1@D' # keep\n",
        ),
    ],
)
def test_each_form_gets_what_it_needs(before: str, after: str) -> None:
    found, new = rewritten(
        before, "kustomization.yaml" if before.startswith("images") else "f.yaml"
    )
    assert found == pinned(after)
    assert not new.refused


def test_the_hex_form_is_quoted_already_where_yaml_could_take_it_for_a_number() -> None:
    found, _ = rewritten(RELEASE + "        image: {repository: r.io/a, tag: v1, sha: ''}\n")
    assert f"tag: v1, sha: '{DIGEST.hex}'" in found


SOURCE = """\
    apiVersion: source.toolkit.fluxcd.io/v1
    kind: OCIRepository
    spec:
      url: oci://r.io/charts/a
"""


def test_a_source_of_flux_gets_its_digest_beside_the_tag() -> None:
    found, _ = rewritten(SOURCE + '      ref:\n        tag: 1.2.3 # {"$imagepolicy": "a:b"}\n')
    assert found == pinned(
        SOURCE + '      ref:\n        tag: 1.2.3 # {"$imagepolicy": "a:b"}\n        digest: =D\n'
    )


def test_a_digest_that_is_there_but_says_nothing_is_filled_or_left() -> None:
    found, new = rewritten(SOURCE + "      ref: {tag: v1, digest: ''}\n")
    assert found == pinned(SOURCE + "      ref: {tag: v1, digest: '=D'}\n")
    found, new = rewritten(SOURCE + "      ref: {tag: v1, digest: }\n")
    assert found == pinned(SOURCE + "      ref: {tag: v1, digest: =D}\n")
    found, new = rewritten(SOURCE + "      ref: {tag: v1, digest: ~}\n")
    assert found == textwrap.dedent(SOURCE + "      ref: {tag: v1, digest: ~}\n")
    ((_, reason),) = new.refused
    assert "already" in reason


def test_an_alias_of_an_image_at_an_image_is_pinned_with_it() -> None:
    text = POD + "    spec:\n      containers:\n      - image: &i a/b:1\n      - image: *i\n"
    found, new = rewritten(text)
    assert found == pinned(text.replace("a/b:1", "a/b:1@D"))
    assert len(new.done) == 2
    assert not new.refused


@pytest.mark.parametrize(
    "other",
    [
        "    metadata: {labels: {version: *v}}\n",
        "    x: [*v]\n",
        "    y: {<<: {z: *v}}\n",
    ],
)
def test_a_tag_that_an_alias_uses_elsewhere_is_left_alone(other: str) -> None:
    text = RELEASE + "        image: {repository: r.io/a, tag: &v 1.2.3}\n"
    text += "        other: {repository: r.io/b, tag: v2}\n" + other
    found, new = rewritten(text)
    assert found == pinned(text.replace("tag: v2", "tag: v2@D"))
    ((one, reason),) = new.refused
    assert (one.site.text, reason) == ("r.io/a:1.2.3", ELSEWHERE)


def test_an_image_behind_an_alias_is_left_alone_where_the_anchor_is_none() -> None:
    text = POD + "    x: &i a/b:1\n    spec: {containers: [{image: *i}, {image: c:2}]}\n"
    found, new = rewritten(text)
    assert found == pinned(text.replace("c:2", "c:2@D"))
    ((one, reason),) = new.refused
    assert (one.site.text, "alias" in reason) == ("a/b:1", True)


def test_a_whole_map_behind_an_alias_is_pinned_where_it_stands() -> None:
    text = RELEASE + textwrap.indent(
        "a: {image: &i {repository: r.io/a, tag: v1}}\nb: {image: *i}\n", "        "
    )
    found, new = rewritten(text)
    assert found == pinned(text.replace("tag: v1", "tag: v1@D"))
    assert len(new.done) == 2


def test_a_merge_that_overrides_half_of_a_map_is_not_broken() -> None:
    """The tag of the anchor serves two repositories: one digest cannot be right for both."""
    text = RELEASE + textwrap.indent(
        "a: &i {repository: r.io/a, tag: v1}\nb: {<<: *i, repository: r.io/b}\n", "        "
    )
    data = textwrap.dedent(text).encode()
    made = scan(["f.yaml"], lambda _: data)
    digests = {
        one: DIGEST if one.site.text == "r.io/a:v1" else Digest("sha256", "34" * 32)
        for one in made.found
    }
    new = rewrite(made.pages["f.yaml"], digests)
    assert new.data == data
    assert len(new.refused) == 2


def test_blocks_and_folds_are_reported() -> None:
    text = POD + "    spec:\n      containers:\n      - image: >-\n          a/b:1\n"
    found, new = rewritten(text)
    assert found == textwrap.dedent(text)
    ((_, reason),) = new.refused
    assert "block" in reason


def test_one_change_that_does_harm_among_many_is_found_by_few_readings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = "".join(f"      - image: a/b{number}:1\n" for number in range(500))
    text = POD + "    spec:\n      containers:\n" + lines
    text = text.replace("a/b77:1", "&bad a/b77:1")
    text += "      - workingDir: *bad\n"
    count = 0
    real = edit.strays

    def counted(*arguments: Any) -> Any:
        nonlocal count
        count += 1
        return real(*arguments)

    monkeypatch.setattr(edit, "strays", counted)
    _, new = rewritten(text)
    assert (len(new.done), [one.site.text for one, _ in new.refused]) == (499, ["a/b77:1"])
    assert count < 30
    monkeypatch.setattr("ocipack.pin.rewrite.READINGS", 4)
    found, new = rewritten(text)
    assert 1 < len(new.refused) < 500
    assert found.count("@") == len(new.done)


def test_the_deepest_file_that_is_read_is_changed_too() -> None:
    depth = limits.DEPTH - 4
    text = (
        f"apiVersion: x.example/v1\nkind: T\nspec: {'[' * depth}{{image: 'a/b:1'}}{']' * depth}\n"
    )
    found, new = rewritten(text)
    assert len(new.done) == 1
    assert f"a/b:1@{DIGEST}" in found
