"""`ocipack mirror` between registries: what arrives, what is asked, what is left alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from registry import Fault, Registry
from shelf import digest_of, image, index

Run = Callable[..., tuple[int, str, str]]

HEAD = "apiVersion: ocipack.dev/v1alpha1\nkind: Mirror\n"


@pytest.fixture
def here() -> Iterator[Registry]:
    """Where content comes from."""
    with Registry() as made:
        yield made


@pytest.fixture
def there() -> Iterator[Registry]:
    """Where it goes."""
    with Registry() as made:
        yield made


@pytest.fixture
def mirror(ocipack: Run, there: Registry, tmp_path: Path) -> Run:
    """Mirror what the sources of a file say, below `m` at the target; nothing need be proven."""

    def call(sources: str, *arguments: str, head: str = "unsigned: true\n") -> Any:
        to = "" if "to:" in head else f"to: oci://{there.name}/m\n"
        (tmp_path / "mirror.yaml").write_text(f"{HEAD}{to}{head}sources:\n{sources}")
        return ocipack("mirror", *arguments)

    return call


def at(registry: Registry, source: Registry, name: str) -> Any:
    """The repository of the target that holds `name` of `source`."""
    return registry.repository(f"m/{source.name.replace(':', '-')}/{name}")


def report(mirrored: Run, sources: str, *arguments: str, **more: Any) -> tuple[int, dict[str, Any]]:
    code, _, err = mirrored(sources, *arguments, "--output", "json=report.json", **more)
    document: dict[str, Any] = json.loads(Path("report.json").read_text())
    document["err"] = err
    return code, document


def test_tags_digests_and_filters_arrive_with_their_bytes(
    mirror: Run, here: Registry, there: Registry
) -> None:
    made = [image(here, "app", tag)["digest"] for tag in ("v1.0.0", "v1.1.0", "v2.0.0", "edge")]
    whole = index(here, "tool", "1", "linux/amd64", "linux/arm64")["digest"]

    code, out, err = mirror(
        f"- image: {here.name}/app\n  select: {{semver: '^1'}}\n  include: [edge]\n"
        f"- artifact: oci://{here.name}/tool:1\n- image: {here.name}/app@{made[2]}\n"
    )

    assert code == 0, err
    app, tool = at(there, here, "app"), at(there, here, "tool")
    by_digest = f"sha256.{made[2].partition(':')[2]}"
    assert app.tags == {"v1.0.0": made[0], "v1.1.0": made[1], "edge": made[3], by_digest: made[2]}
    assert tool.tags == {"1": whole}
    for name in ("app", "tool"):
        wanted, found = here.repository(name), at(there, here, name)
        assert found.manifests == wanted.manifests
        assert found.blobs == wanted.blobs
    lines = out.splitlines()
    assert len(lines) == 5
    base = f"oci://{there.name}/m/{here.name.replace(':', '-')}"
    assert lines[0] == f"copied          {base}/app:v1.1.0@{made[1]}  {here.name}/app:v1.1.0"
    assert "5 copied" in err


def test_a_second_run_asks_one_head_a_tag_at_each_side_and_lists_once(
    mirror: Run, here: Registry, there: Registry
) -> None:
    for number in range(200):
        image(here, "app", f"v1.{number}.0")
    sources = f"- image: {here.name}/app\n  select: {{semver: '>=1'}}\n"
    assert mirror(sources)[0] == 0
    here.requests.clear()
    there.requests.clear()

    code, found = report(mirror, sources)

    assert (code, found["counts"]) == (0, {"skipped": 200})
    assert len(here.requests) + len(there.requests) <= 401
    assert here.lines("GET") == ["GET /v2/app/tags/list"]
    assert not there.lines("GET|PUT|POST")


def test_a_moved_tag_is_noticed_and_left_alone_until_it_is_to_be_overwritten(
    mirror: Run, here: Registry, there: Registry
) -> None:
    old = image(here, "app", "v1")["digest"]
    sources = f"- image: {here.name}/app:v1\n- image: {here.name}/app:v2\n"
    image(here, "app", "v2")
    assert mirror(sources)[0] == 0
    new = image(here, "app", "v1", b"new")["digest"]

    code, found = report(mirror, sources)

    assert code == 1
    assert found["counts"] == {"skipped": 1, "drifted": 1}
    assert at(there, here, "app").tags["v1"] == old
    (finding,) = found["findings"]
    assert finding["rule"] == "mirror-drifted"
    assert (finding["file"], finding["line"]) == ("mirror.yaml", 6)
    assert (old in finding["message"], new in finding["message"]) == (True, True)
    assert report(mirror, sources, "--overwrite", "--dry-run")[1]["counts"] == {
        "skipped": 1,
        "would-overwrite": 1,
    }
    assert at(there, here, "app").tags["v1"] == old

    code, found = report(mirror, sources, "--overwrite")

    assert (code, found["counts"]) == (0, {"overwritten": 1, "skipped": 1})
    assert found["items"][0]["before"] == old
    assert at(there, here, "app").tags["v1"] == new


def test_a_dry_run_says_the_same_and_writes_nothing(
    mirror: Run, here: Registry, there: Registry
) -> None:
    image(here, "app", "v1", b"one", b"two")
    sources = f"- image: {here.name}/app:v1\n"

    code, tried = report(mirror, sources, "--dry-run")

    assert code == 0
    assert there.repositories.get("m/app") is None
    assert not there.lines("PUT|POST|PATCH")
    _, done = report(mirror, sources)
    assert [one.pop("outcome") for one in (*tried["items"], *done["items"])] == [
        *("would-copy", "copied")
    ]
    assert tried["items"] == done["items"]


def test_one_bad_item_of_hundreds_keeps_no_other_from_being_mirrored(
    mirror: Run, here: Registry, there: Registry
) -> None:
    tags = [f"v{number}" for number in range(300)]
    made = {tag: image(here, "app", tag)["digest"] for tag in tags}
    here.switches.faults.append(Fault(f"GET /v2/app/(manifests/v77|blobs/{made['v77']})$", 403))

    code, found = report(mirror, f"- image: {here.name}/app\n  tags: [{', '.join(tags)}]\n")

    assert code == 3
    assert found["counts"] == {"copied": 299, "failed": 1}
    (bad,) = [one for one in found["items"] if one["outcome"] == "failed"]
    assert bad["source"] == f"{here.name}/app:v77"
    assert bad["error"]["kind"] == "Denied"
    assert f"error: {here.name}/app:v77: " in found["err"]
    assert at(there, here, "app").tags == {t: d for t, d in made.items() if t != "v77"}

    here.switches.faults.clear()
    code, found = report(mirror, f"- image: {here.name}/app\n  tags: [{', '.join(tags)}]\n")
    assert (code, found["counts"]) == (0, {"copied": 1, "skipped": 299})


def test_what_is_altered_on_the_way_is_refused_and_tags_nothing(
    mirror: Run, here: Registry, there: Registry
) -> None:
    image(here, "app", "v1", b"layer of v1")
    here.switches.faults.append(Fault(f"GET .*{digest_of(b'layer of v1')}", act="spoil"))

    code, found = report(mirror, f"- image: {here.name}/app:v1\n")

    assert code == 1
    assert found["items"][0]["error"]["kind"] == "IntegrityError"
    assert not at(there, here, "app").tags


def test_a_tag_that_vanished_from_the_source_fails_alone(
    mirror: Run, here: Registry, there: Registry
) -> None:
    image(here, "app", "v1")

    code, found = report(mirror, f"- image: {here.name}/app\n  tags: [v1, v0]\n")

    assert code == 3
    assert [one["outcome"] for one in found["items"]] == ["copied", "failed"]
    assert found["items"][1]["error"]["kind"] == "NotFound"
    assert list(at(there, here, "app").tags) == ["v1"]


def test_a_tag_that_moves_while_it_is_mirrored_is_not_overwritten(
    mirror: Run, here: Registry, there: Registry
) -> None:
    """Somebody tags at the target between our look at it and our writing of the tag."""
    image(here, "app", "v1")
    place = at(there, here, "app")
    theirs = image(there, f"m/{here.name.replace(':', '-')}/app", "")["digest"]
    layer = digest_of(b"app:v1")
    answer = here.act

    def act(seen: Any, body: bytes) -> Any:
        if layer in seen.target:
            place.tags["v1"] = theirs
        return answer(seen, body)

    here.act = act  # type: ignore[method-assign]  # somebody acts in between

    code, found = report(mirror, f"- image: {here.name}/app:v1\n")

    assert code == 1
    assert found["items"][0]["error"]["kind"] == "Rejected"
    assert place.tags == {"v1": theirs}


def test_a_target_whose_tags_never_move_is_said_so(
    mirror: Run, here: Registry, there: Registry
) -> None:
    there.switches.immutable = "v.*"
    image(here, "app", "v1")
    sources = f"- image: {here.name}/app:v1\n"
    assert mirror(sources)[0] == 0
    image(here, "app", "v1", b"new")

    code, found = report(mirror, sources, "--overwrite")

    assert code == 1
    assert "does not let the tag 'v1' move" in found["items"][0]["error"]["message"]


def test_tags_that_never_move_cost_no_request_once_they_are_there(
    mirror: Run, here: Registry, there: Registry
) -> None:
    for tag in ("v1", "v2", "latest"):
        image(here, "app", tag)
    sources = f"- image: {here.name}/app\n  tags: [v1, v2, latest]\n  immutableTags: 'v*'\n"
    assert mirror(sources)[0] == 0
    here.requests.clear()
    there.requests.clear()

    assert report(mirror, sources)[1]["counts"] == {"skipped": 3}

    place = f"/v2/m/{here.name.replace(':', '-')}/app"
    assert here.lines() == ["HEAD /v2/app/manifests/latest"]
    assert there.lines() == [f"GET {place}/tags/list", f"HEAD {place}/manifests/latest"]


def test_full_looks_at_tags_too_that_never_move(mirror: Run, here: Registry) -> None:
    image(here, "app", "v1")
    sources = f"- image: {here.name}/app\n  tags: [v1]\n  immutableTags: 'v*'\n"
    assert mirror(sources)[0] == 0
    image(here, "app", "v1", b"moved all the same")

    assert report(mirror, sources)[1]["counts"] == {"skipped": 1}
    assert report(mirror, sources, "--full")[1]["counts"] == {"drifted": 1}


def test_two_sources_for_one_tag_move_nothing(mirror: Run, here: Registry, there: Registry) -> None:
    image(here, "a/app", "v1")
    image(here, "b/app", "v1")
    image(here, "c/app", "v1")
    head = f"to: oci://{there.name}/m\nunsigned: true\n"

    code, _, err = mirror(
        "".join(
            f"- {{image: '{here.name}/{x}/app:v1', to: 'oci://{there.name}/x'}}\n" for x in "cab"
        ),
        head=head,
    )

    assert code == 1
    assert f"would be both {here.name}/c/app:v1 and {here.name}/a/app:v1" in err
    assert "mirror.yaml:6:3, mirror.yaml:7:3" in err
    assert not there.lines("PUT|POST")


def test_a_report_for_test_results_says_each_item_once(
    mirror: Run, here: Registry, there: Registry
) -> None:
    image(here, "app", "v1")
    image(here, "app", "v2")
    other = image(there, f"m/{here.name.replace(':', '-')}/app", "v2")["digest"]

    _, out, _ = mirror(
        f"- image: {here.name}/app\n  tags: [v1, v2, v3]\n", "--output", "junit=junit.xml"
    )

    cases = [(f"{here.name}/app:{tag}") for tag in ("v1", "v2", "v3")]
    found = ET.parse("junit.xml").getroot().iter("testcase")
    assert {case.get("name", ""): [part.tag for part in case] for case in found} == {
        cases[0]: [],
        cases[1]: ["failure"],
        cases[2]: ["error"],
    }
    assert f"/app:v2@{other}  {cases[1]}" in out.splitlines()[1]


def test_nothing_is_mirrored_of_which_nobody_says_who_must_have_signed(
    mirror: Run, here: Registry, there: Registry
) -> None:
    image(here, "app", "v1")

    code, _, err = mirror(f"- image: {here.name}/app:v1\n", head="")

    assert code == 2
    assert "only what has been verified is mirrored" in err
    assert not there.requests
    assert mirror(f"- image: {here.name}/app:v1\n", "--allow-unsigned", head="")[0] == 0


def test_a_project_says_which_registries_may_be_contacted_at_all(
    mirror: Run, here: Registry, there: Registry
) -> None:
    image(here, "app", "v1")
    Path("ocipack.yaml").write_text(
        f"apiVersion: ocipack.dev/v1alpha1\nregistries: ['{there.name}']\n"
    )

    code, found = report(mirror, f"- image: {here.name}/app:v1\n")

    assert code
    assert (
        "is not among the registries that this project may contact"
        in found["items"][0]["error"]["message"]
    ), found
    assert not here.requests


def test_nothing_wanted_is_not_a_success(mirror: Run, here: Registry) -> None:
    code, found = report(mirror, f"- image: {here.name}/app\n  select: {{pattern: '.*'}}\n")

    assert code == 3
    assert found["sources"][0]["error"]["kind"] == "NotFound"
    assert "its tags cannot be listed" in found["err"]
    assert "give the tags themselves" in found["err"]
