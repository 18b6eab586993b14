"""Pinning changes what it means to, in files of any look."""

from __future__ import annotations

import hashlib

from hypothesis import given, settings, strategies as st

from ocipack.k8s import edit
from ocipack.oci.digest import Digest
from ocipack.pin.rewrite import rewrite
from ocipack.pin.scan import Found, Scan, Status, scan

REPOSITORIES = ["quay.io/a/b", "localhost:5000/x", "nginx", "ghcr.io/team/app-1"]
TAGS = ["1", "1.25", "v2-alpine", "706798e8", "2024-01-01", "on"]
COMMENTS = ["", "  # nötig", " #", "   "]
QUOTES = ["", "'", '"']

comment = st.sampled_from(COMMENTS)
blank = st.sampled_from(["", "\n", "\n# €𐍈\n", "   \n"])


@st.composite
def image(draw: st.DrawFn) -> str:
    name = f"{draw(st.sampled_from(REPOSITORIES))}:{draw(st.sampled_from(TAGS))}"
    quote = draw(st.sampled_from(QUOTES))
    return f"{quote}{name}{quote}"


@st.composite
def container(draw: st.DrawFn, number: int) -> str:
    text = draw(image())
    shape = draw(st.sampled_from(["block", "flow", "json", "anchored", "folded", "wide"]))
    if shape == "flow":
        return f"      - {{name: c{number}, image: {text}, args: [ä]}}{draw(comment)}\n"
    if shape == "json":
        inner = text.strip("'\"")
        return f'      - {{"image": "{inner}" , "name":"c{number}"}}\n'
    if shape == "folded":
        return f"      - image: >-\n          {text}\n        name: c{number}\n"
    if shape == "wide":
        return f"      - image:\n          {text}{draw(comment)}\n        name: ü{number}\n"
    anchor = f"&i{number} " if shape == "anchored" else ""
    made = f"      - name: c{number}{draw(comment)}\n{draw(blank)}"
    made += f"        image: {anchor}{text}{draw(comment)}\n"
    if shape == "anchored" and draw(st.booleans()):
        use = draw(st.sampled_from(["image", "workingDir"]))
        made += f"      - name: d{number}\n        {use}: *i{number}\n"
        if use != "image":
            made += "        image: busybox:1\n"
    return made


@st.composite
def deployment(draw: st.DrawFn) -> str:
    count = draw(st.integers(1, 4))
    return (
        f"apiVersion: apps/v1{draw(comment)}\nkind: Deployment\nmetadata: {{name: é}}\n"
        f"spec:\n  template:\n    spec:\n      containers:{draw(comment)}\n"
        + "".join(draw(container(number)) for number in range(count))
    )


@st.composite
def release(draw: st.DrawFn) -> str:
    repository = draw(st.sampled_from(REPOSITORIES))
    tag = draw(st.sampled_from(TAGS))
    quote = draw(st.sampled_from(QUOTES))
    digest = draw(st.sampled_from(["", "      digest: ''\n", "      digest:\n"]))
    return (
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nspec:\n  values:\n    image:\n"
        f"      repository: {repository}{draw(comment)}\n"
        f"      tag: {quote}{tag}{quote}{draw(comment)}\n{digest}"
    )


@st.composite
def source(draw: st.DrawFn) -> str:
    ref = draw(st.sampled_from(["\n    tag: 1.2.3", " {tag: 1.2.3}", "\n    tag: 706798e8"]))
    return (
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nspec:\n"
        f"  url: oci://localhost:5000/chart\n  ref:{ref}{draw(comment)}\n"
    )


@st.composite
def files(draw: st.DrawFn) -> bytes:
    documents = draw(st.lists(st.one_of(deployment(), release(), source()), min_size=1, max_size=3))
    text = "---\n".join(documents)
    if draw(st.booleans()):
        text = text.removesuffix("\n")
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    bom = "\ufeff" if draw(st.booleans()) else ""
    return (bom + text).encode()


def digest_of(text: str) -> Digest:
    return Digest("sha256", hashlib.sha256(text.encode()).hexdigest())


def looked(data: bytes) -> Scan:
    return scan(["f.yaml"], lambda _: data)


def pins(made: Scan) -> dict[Found, Digest]:
    return {
        one: digest_of(str(one.reference))
        for one in made.found
        if one.status is Status.OPEN and one.counts
    }


@settings(max_examples=300, deadline=None)
@given(files())
def test_only_scalars_grow_and_only_pinned_values_change(data: bytes) -> None:
    made = looked(data)
    assert not made.findings
    wanted = pins(made)
    if not wanted:
        return
    page = made.pages["f.yaml"]
    new = rewrite(page, wanted)

    # every byte that was there is still there, in order: what is new stands between them
    rest = iter(new.data)
    kept = sum(byte in rest for byte in data)
    assert kept == len(data)

    # reading gives the old value but at the pinned places
    paths = {(one.document, one.site.at) for one in new.done}
    paths |= {(one.document, (*one.site.path, "digest")) for one in new.done}
    after = edit.sheets(new.data)
    assert len(after) == len(page.sheets)
    for old, now in zip(page.sheets, after, strict=True):
        for path, value in edit.differences(old.document.value, now.document.value):
            assert (old.document.index, path) in paths
            assert isinstance(value, str)
            assert "sha256:" in value

    # everything is either done or refused with words
    assert {*new.done, *(one for one, _ in new.refused)} == set(wanted)
    assert all(reason for _, reason in new.refused)


@settings(max_examples=200, deadline=None)
@given(files())
def test_pinning_again_changes_nothing(data: bytes) -> None:
    made = looked(data)
    if not made.pages or not pins(made):
        return
    once = rewrite(made.pages["f.yaml"], pins(made))
    again = looked(once.data)
    pinned = {(one.document, one.pointer) for one in again.found if one.status is Status.PINNED}
    for one in once.done:
        keyed = one.pointer.removesuffix("/tag") + "/digest"
        assert (one.document, one.pointer) in pinned or (one.document, keyed) in pinned
    left = pins(again)
    if left:
        assert rewrite(again.pages["f.yaml"], left).data == once.data
