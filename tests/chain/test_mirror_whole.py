"""What `ocipack mirror` carries along, proves, leaves out, renames and shares among parts."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from registry import Fault, Registry, Switches
from shelf import digest_of, image, index

Run = Callable[..., tuple[int, str, str]]

HEAD = "apiVersion: ocipack.dev/v1alpha1\nkind: Mirror\n"


@pytest.fixture
def here() -> Iterator[Registry]:
    """Where content comes from."""
    with Registry() as made:
        yield made


@pytest.fixture(params=[True, False], ids=["referrers", "fallback"])
def there(request: pytest.FixtureRequest) -> Iterator[Registry]:
    """Where it goes: with the referrers API, and without."""
    with Registry(Switches(referrers=request.param)) as made:
        yield made


@pytest.fixture
def mirrored(ocipack: Run, there: Registry) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Mirror what a file says, by its form `path`; gives the exit code and the report."""

    def call(body: str, *arguments: str) -> tuple[int, dict[str, Any]]:
        head = f"{HEAD}to: oci://{there.name}/m\n"
        relocate = "" if "relocate:" in body else "relocate: {form: path}\n"
        Path("mirror.yaml").write_text(f"{head}{relocate}{body}")
        code, out, err = ocipack("mirror", *arguments, "--output", "json=report.json")
        document: dict[str, Any] = json.loads(Path("report.json").read_text())
        return code, {**document, "out": out, "err": err}

    return call


def signed(ocipack: Run, registry: Registry, name: str, tag: str, key: str) -> str:
    """An image with signatures in both forms; its digest."""
    digest: str = image(registry, name, tag)["digest"]
    code, _, err = ocipack("sign", f"oci://{registry.name}/{name}@{digest}", "--key", key)
    assert code == 0, err
    return digest


def test_signatures_come_along_and_verify_at_the_target(
    ocipack: Run, mirrored: Any, here: Registry, there: Registry, key: str, public: str
) -> None:
    digest = signed(ocipack, here, "app", "v1", key)

    code, found = mirrored(f"sources: [{{image: '{here.name}/app:v1'}}]\n", "--key", public)

    assert code == 0, found
    (item,) = found["items"]
    assert (item["outcome"], item["proof"]) == ("copied", "verified")
    assert item["kinds"]["signatures"] == 2
    place = f"oci://{there.name}/m/app:v1"
    assert ocipack("verify", place, "--key", public)[0] == 0
    own = there.repository("m/app")
    assert f"sha256-{digest.partition(':')[2]}.sig" in own.tags
    theirs = here.repository("app").manifests
    assert theirs.items() <= own.manifests.items()  # and a fallback listing where there is no API


def test_a_tag_that_moves_after_its_proof_moves_nothing_here(
    ocipack: Run, mirrored: Any, here: Registry, there: Registry, key: str, public: str
) -> None:
    """What is copied is what was verified, not what the tag names a moment later."""
    digest = signed(ocipack, here, "app", "v1", key)
    other = image(here, "app", "", b"nobody signed this")["digest"]
    answer = here.act

    def act(seen: Any, body: bytes) -> Any:
        done = answer(seen, body)
        if seen.target.endswith("/manifests/v1"):
            here.repository("app").tags["v1"] = other
        return done

    here.act = act  # type: ignore[method-assign]  # somebody moves the tag as soon as it was asked

    code, found = mirrored(f"sources: [{{image: '{here.name}/app:v1'}}]\n", "--key", public)

    assert code == 0, found
    assert there.repository("m/app").tags["v1"] == digest
    assert other not in there.repository("m/app").manifests


def test_what_nobody_trusted_has_signed_is_not_copied(
    ocipack: Run, mirrored: Any, here: Registry, there: Registry, key: str, public: str
) -> None:
    signed(ocipack, here, "app", "v1", key)
    image(here, "app", "v2")

    code, found = mirrored(
        f"sources: [{{image: '{here.name}/app', tags: [v1, v2]}}]\n", "--key", public
    )

    assert code == 1
    assert [one["outcome"] for one in found["items"]] == ["copied", "failed"]
    assert "no signature" in found["items"][1]["error"]["message"]
    assert "v2" not in there.repository("m/app").tags


@pytest.mark.parametrize(("more", "exits"), [((), 3), (("--full",), 1)])
def test_a_target_that_loses_what_it_took_gets_no_tag(
    ocipack: Run,
    mirrored: Any,
    here: Registry,
    there: Registry,
    key: str,
    more: tuple[str, ...],
    exits: int,
) -> None:
    """It loses a signature at once, or as soon as it has shown it."""
    digest = signed(ocipack, here, "app", "v1", key)
    signature = f"sha256-{digest.partition(':')[2]}.sig"
    own, answer = there.repository("m/app"), there.act

    def act(seen: Any, body: bytes) -> Any:
        done = answer(seen, body)
        looked = seen.method != "PUT" and seen.target.endswith(("tags/list", signature))
        if looked if more else seen.target.endswith(signature):
            own.tags.pop(signature, None)
        return done

    there.act = act  # type: ignore[method-assign]  # something there cleans up too well

    code, found = mirrored(f"unsigned: true\nsources: [{{image: '{here.name}/app:v1'}}]\n", *more)

    assert code == exits, found
    assert signature in found["items"][0]["error"]["message"]
    assert "v1" not in own.tags


def policy(here: Registry, public: str, exempt: str = "") -> None:
    text = (
        "apiVersion: ocipack.dev/v1alpha1\nkind: VerificationPolicy\nmetadata: {name: p}\nspec:\n"
        f"  images: ['{here.name}/**']\n  authorities:\n  - keys: [{{file: '{public}'}}]\n"
    )
    if exempt:
        text += (
            f"  exemptions:\n  - images: ['{exempt}']\n    owner: team\n    reason: old\n"
            "    until: 2999-12-31\n"
        )
    Path("policy.yaml").write_text(text)


def test_a_policy_of_the_file_is_found_beside_it_and_exemptions_need_a_word(
    mirrored: Any, here: Registry, public: str
) -> None:
    policy(here, public, exempt=f"{here.name}/old")
    image(here, "old", "v1")
    body = f"policies: [policy.yaml]\nsources: [{{image: '{here.name}/old:v1'}}]\n"

    code, found = mirrored(body)

    assert code == 1, found
    assert "exempted, not proven" in found["items"][0]["error"]["message"]
    code, found = mirrored(body, "--allow-exempted")
    assert (code, found["items"][0]["proof"]) == (0, "exempted"), found


def test_the_file_can_say_what_need_not_be_signed_but_not_against_the_command_line(
    mirrored: Any, here: Registry, public: str
) -> None:
    policy(here, public)
    image(here, "app", "v1")
    body = f"policies: [policy.yaml]\nsources: [{{image: '{here.name}/app:v1', unsigned: true}}]\n"

    assert mirrored(body, "--key", public)[0] == 1
    code, found = mirrored(body)
    assert (code, found["items"][0]["proof"]) == (0, "unsigned")


def test_what_is_there_already_is_verified_all_the_same(
    mirrored: Any, here: Registry, public: str
) -> None:
    image(here, "app", "v1")
    body = f"sources: [{{image: '{here.name}/app:v1'}}]\n"
    assert mirrored(body, "--allow-unsigned")[0] == 0

    assert mirrored(body, "--key", public)[0] == 1


def test_signatures_can_be_required_without_saying_whose(
    ocipack: Run, mirrored: Any, here: Registry, key: str
) -> None:
    signed(ocipack, here, "app", "v1", key)
    image(here, "app", "v2")
    body = f"unsigned: true\nsources: [{{image: '{here.name}/app', tags: [v1, v2]}}]\n"

    code, found = mirrored(body, "--require-signatures")

    assert code == 1
    assert [one["outcome"] for one in found["items"]] == ["copied", "failed"]
    assert "no signature is attached" in found["items"][1]["error"]["message"]


def test_attached_things_can_be_left_behind(
    ocipack: Run, mirrored: Any, here: Registry, there: Registry, key: str
) -> None:
    digest = signed(ocipack, here, "app", "v1", key)

    code, _ = mirrored(
        f"unsigned: true\nsources: [{{image: '{here.name}/app:v1', attached: false}}]\n"
    )

    assert code == 0
    assert list(there.repository("m/app").manifests) == [digest]


def test_a_signature_made_later_comes_with_full(
    ocipack: Run, mirrored: Any, here: Registry, there: Registry, key: str, public: str
) -> None:
    body = f"unsigned: true\nsources: [{{image: '{here.name}/app:v1'}}]\n"
    image(here, "app", "v1")
    assert mirrored(body)[0] == 0
    signed(ocipack, here, "app", "v1", key)
    assert mirrored(body)[1]["counts"] == {"skipped": 1}

    code, found = mirrored(body, "--full")

    assert (code, found["counts"]) == (0, {"copied": 1}), found
    assert ocipack("verify", f"oci://{there.name}/m/app:v1", "--key", public)[0] == 0
    assert mirrored(body, "--full")[1]["counts"] == {"skipped": 1}


def test_chosen_platforms_keep_the_index_as_it_is(
    mirrored: Any, here: Registry, there: Registry
) -> None:
    there.switches.sparse = True
    whole = index(here, "app", "v1", "linux/amd64", "linux/arm64/v8", "windows/amd64")

    code, found = mirrored(
        f"unsigned: true\nsources: [{{image: '{here.name}/app:v1', "
        "platforms: [linux/arm64, linux/s390x]}]\n"
    )

    assert code == 0, found
    own = there.repository("m/app")
    assert own.tags == {"v1": whole["digest"]}
    document = json.loads(own.manifests[whole["digest"]][1])
    present = [e["platform"] for e in document["manifests"] if e["digest"] in own.manifests]
    assert present == [{"os": "linux", "architecture": "arm64", "variant": "v8"}]
    (item,) = found["items"]
    assert (item["leftOut"], item["lackingPlatforms"]) == (2, ["linux/s390x"])
    assert {one["rule"] for one in found["findings"]} == {"mirror-sparse", "mirror-platform"}


def test_a_target_that_takes_no_index_with_holes_says_what_to_do(
    mirrored: Any, here: Registry, there: Registry
) -> None:
    index(here, "app", "v1", "linux/amd64", "linux/arm64")

    code, found = mirrored(
        f"unsigned: true\nsources: [{{image: '{here.name}/app:v1', platforms: [linux/arm64]}}]\n"
    )

    assert code == 3
    assert "leave platforms out" in found["items"][0]["error"]["hint"]
    assert not there.repository("m/app").tags


def test_an_image_for_none_of_the_platforms_is_refused(mirrored: Any, here: Registry) -> None:
    index(here, "app", "v1", "linux/amd64")

    code, found = mirrored(
        f"unsigned: true\nsources: [{{image: '{here.name}/app:v1', platforms: [linux/arm64]}}]\n"
    )

    assert code == 1
    error = found["items"][0]["error"]
    assert "no entry is for linux/arm64" in error["message"]
    assert error["hint"] == "it has linux/amd64"


def test_flat_puts_everything_into_one_repository_under_digests(
    mirrored: Any, here: Registry, there: Registry
) -> None:
    digests = [image(here, name, "v1")["digest"] for name in ("a", "b")]
    body = (
        "relocate: {form: flat}\nunsigned: true\nsources:\n"
        f"- image: {here.name}/a:v1\n- image: {here.name}/b:v1\n"
    )

    code, found = mirrored(body)

    assert code == 0, found
    assert there.repository("m").tags == {
        f"sha256.{digest.partition(':')[2]}": digest for digest in digests
    }
    assert mirrored(body)[1]["counts"] == {"skipped": 2}
    code, found = mirrored(body, "--write", "hosts-toml=certs.d")
    assert code == 2
    assert "hosts.toml can only put something before" in found["error"]["message"]


def locked(ocipack: Run, here: Registry, *images: str) -> None:
    Path("tree").mkdir(exist_ok=True)
    lines = ["apiVersion: v1", "kind: Pod", "metadata: {name: p}", "spec:", "  containers:"]
    for number, name in enumerate(images):
        lines += [f"  - name: c{number}", f"    image: {here.name}/{name}"]
    Path("tree/pod.yaml").write_text("\n".join(lines) + "\n")
    code, _, err = ocipack("pin", "tree", "--lock", "ocipack.lock")
    assert code == 0, err


def test_a_lock_is_mirrored_by_digest_even_if_its_tags_have_moved(
    ocipack: Run, mirrored: Any, here: Registry, there: Registry
) -> None:
    old = image(here, "app", "v1")["digest"]
    image(here, "web", "v2")
    locked(ocipack, here, "app:v1", "web:v2")
    new = image(here, "app", "v1", b"new")["digest"]

    code, found = mirrored("unsigned: true\nsources: [{lock: ocipack.lock}]\n")

    assert code == 0, found
    assert there.repository("m/app").tags == {"v1": old}
    (finding,) = found["findings"]
    assert finding["rule"] == "image-moved"
    assert found["items"][0]["sourceTagMovedTo"] == new


def test_a_lock_whose_entries_are_there_costs_one_head_each(
    ocipack: Run, mirrored: Any, here: Registry, there: Registry
) -> None:
    tags = [f"v{number}" for number in range(200)]
    for tag in tags:
        image(here, "app", tag)
    locked(ocipack, here, *(f"app:{tag}" for tag in tags))
    body = "unsigned: true\nsources: [{lock: ocipack.lock}]\n"
    assert mirrored(body)[0] == 0
    here.requests.clear()
    there.requests.clear()

    assert mirrored(body)[1]["counts"] == {"skipped": 200}

    assert not here.requests
    assert len(there.lines("HEAD")) == len(there.requests) == 200
    image(there, "m/app", "v7", b"somebody moved it")
    code, found = mirrored(body)
    assert (code, found["counts"]) == (1, {"skipped": 199, "drifted": 1})


def test_what_a_lock_saw_attached_must_still_be_attached(
    ocipack: Run, mirrored: Any, here: Registry, there: Registry, key: str
) -> None:
    digest = signed(ocipack, here, "app", "v1", key)
    locked(ocipack, here, "app:v1")
    own = here.repository("app")
    gone = [one for one, (_, raw) in own.manifests.items() if b'"subject"' in raw]
    for one in gone:
        del own.manifests[one]

    code, found = mirrored("unsigned: true\nsources: [{lock: ocipack.lock}]\n")

    assert code == 1
    assert f"{gone[0]}, which the lock saw attached" in found["items"][0]["error"]["message"]
    assert digest not in there.repository("m/app").manifests


def test_maps_lead_to_what_is_there(
    ocipack: Run, mirrored: Any, here: Registry, there: Registry
) -> None:
    image(here, "team/app", "v1")
    body = (
        "unsigned: true\nsources:\n"
        f"- image: {here.name}/team/app:v1\n- image: {here.name}/gone:v1\n"
    )

    code, found = mirrored(
        *(body, "--map-out", "map.yaml", "--write", "hosts-toml=certs.d"),
        *("--write", "registries-conf=conf.d/m.conf", "--write", "idms=idms.yaml"),
    )

    assert code == 3, found
    assert Path("map.yaml").read_text() == (f'"{here.name}/team/app": "{there.name}/m/team/app"\n')
    hosts = tomllib.loads(Path(f"certs.d/{here.name}/hosts.toml").read_text())
    assert list(hosts["host"]) == [f"http://{there.name}/v2/m"]
    conf = tomllib.loads(Path("conf.d/m.conf").read_text())
    assert conf["registry"][0]["mirror"] == [
        {"location": f"{there.name}/m/team/app", "insecure": True}
    ]
    assert "gone" not in Path("idms.yaml").read_text()
    here.requests.clear()
    Path("pod.yaml").write_text(
        f"apiVersion: v1\nkind: Pod\nspec: {{containers: [{{image: '{here.name}/team/app:v1'}}]}}\n"
    )
    assert ocipack("pin", "pod.yaml", "--map", "map.yaml")[0] == 0
    assert not here.requests


def test_a_map_that_cannot_be_written_hides_no_report(mirrored: Any, here: Registry) -> None:
    image(here, "app", "v1")
    Path("file").write_text("")

    code, found = mirrored(
        f"unsigned: true\nsources: [{{image: '{here.name}/app:v1'}}]\n", "--map-out", "file/map"
    )

    assert (code, found["counts"]) == (3, {"copied": 1})
    assert "error: the map: " in found["err"]


@pytest.mark.parametrize("more", [("--shard", "0/2"), ("--dry-run",)])
def test_a_part_of_a_run_writes_no_map(
    mirrored: Any, here: Registry, more: tuple[str, ...]
) -> None:
    image(here, "app", "v1")
    body = f"unsigned: true\nsources: [{{image: '{here.name}/app:v1'}}]\n"

    code, found = mirrored(body, "--map-out", "map.yaml", *more)

    assert code == 2
    assert "does not know the whole map" in found["error"]["message"]


def test_parts_share_the_work_and_send_a_shared_layer_once_each_at_most(
    mirrored: Any, here: Registry, there: Registry
) -> None:
    shared = b"a base layer that all have"
    for number in range(40):
        image(here, f"team/app-{number % 4}", f"v{number}", shared, f"own {number}".encode())
    body = "unsigned: true\nsources:\n" + "".join(
        f"- {{image: '{here.name}/team/app-{number}', select: {{pattern: 'v.*'}}}}\n"
        for number in range(4)
    )
    done: list[str] = []
    for part in range(4):
        code, found = mirrored(body, "--shard", f"{part}/4")
        assert code == 0, found
        assert found["shard"] == {"index": part, "count": 4, "total": 40}
        assert 0 < found["counts"]["copied"] < 40
        done += [one["target"] for one in found["items"]]

    assert len(done) == len(set(done)) == 40
    assert sum(len(repository.tags) for repository in there.repositories.values()) == 40
    sent = Counter(there.received)
    assert sent[digest_of(shared)] <= 4
    assert all(count == 1 for digest, count in sent.items() if digest != digest_of(shared))
    assert mirrored(body)[1]["counts"] == {"skipped": 40}


def test_a_registry_that_says_too_many_is_asked_again(
    mirrored: Any, here: Registry, there: Registry
) -> None:
    for number in range(20):
        image(here, "app", f"v{number}")
    busy = {"Retry-After": "0"}
    here.switches.faults.append(Fault("manifests", 429, headers=busy, skip=3, times=2))
    there.switches.faults.append(Fault("PUT", 429, headers=busy, skip=5, times=2))

    code, found = mirrored(
        f"unsigned: true\nsources: [{{image: '{here.name}/app', select: {{pattern: '.*'}}}}]\n"
    )

    assert (code, found["counts"]) == (0, {"copied": 20}), found
