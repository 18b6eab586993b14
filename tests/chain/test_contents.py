"""`verify --contents`, whole commands: what is named inside is pinned, allowed and verified."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from registry import Fault, Registry

from ocipack.cli.commands import verify as command

Run = Callable[..., tuple[int, str, str]]

NO, MISUSE, UNKNOWN = 1, 2, 3
DIGEST = "sha256:" + "a" * 64
PINNED = f"ghcr.io/org/app:1@{DIGEST}"
TAGGED = "ghcr.io/org/app:1"
ALL = "    images: ['**']\n    sources: ['**']\n"


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as made:
        yield made


def pod(image: str, name: str = "p") -> str:
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: d}}\n"
        f"spec:\n  containers:\n  - name: c\n    image: {image}\n"
    )


def tree(path: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    return path


def policy(path: Path, public: str, contents: str = "", images: str = "'**'") -> str:
    path.write_text(
        "apiVersion: ocipack.dev/v1alpha1\nkind: VerificationPolicy\n"
        f"metadata:\n  name: {path.stem}\nspec:\n  images: [{images}]\n"
        f'  authorities: [{{keys: [{{file: "{public}"}}]}}]\n'
        + (f"  contents:\n{contents}" if contents else "")
    )
    return str(path)


def deliver(ocipack: Run, top: Path, to: str, key: str) -> str:
    """Pack and sign without judging anything: what a careless publisher does."""
    code, out, err = ocipack("pack", str(top), "--to", to, "--allow-dirty")
    assert code == 0, err
    assert ocipack("sign", out.strip(), "--key", key)[0] == 0
    return out.strip()


@pytest.fixture
def site(ocipack: Run, key: str, tmp_path: Path) -> Callable[..., str]:
    """Deliver files as one signed artifact; its place in a layout."""

    def make(files: dict[str, str], name: str = "site") -> str:
        return deliver(ocipack, tree(tmp_path / "tree" / name, files), f"ocidir://{name}", key)

    return make


def verdicts(out: str) -> dict[str, str]:
    [artifact] = json.loads(out)["artifacts"]
    return {one["text"]: one["verdict"] for one in artifact["contents"]["references"]}


def excuse(image: str, year: int) -> str:
    said = f"images: ['{image}'], owner: t, reason: r, until: {year}-01-01"
    return f"    exemptions: [{{{said}}}]\n"


UNSEEN = "    refuseUnseen: true\n"
CHANGES = (
    "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: c}\nspec:\n  rules:\n"
    "  - name: r\n    match: {any: [{resources: {kinds: [Pod]}}]}\n"
    "    mutate: {patchStrategicMerge: {spec: {}}}\n"
)
"""Objects that change others where no reader of manifests sees it."""

OVERLAY = {
    "base/pod.yaml": pod(TAGGED),
    "base/kustomization.yaml": "resources: [pod.yaml]\n",
    "prod/kustomization.yaml": "resources: [../base]\n"
    f"images: [{{name: ghcr.io/org/app, digest: '{DIGEST}'}}]\n",
}


def test_what_an_overlay_pins_is_pinned(
    ocipack: Run, site: Callable[..., str], public: str
) -> None:
    place = site(OVERLAY)
    code, out, err = ocipack(
        "verify", place, "--key", public, "--contents", "--explain", "--output", "json"
    )
    assert code == 0, err
    assert verdicts(out) == {f"ghcr.io/org/app@{DIGEST}": "allowed"}
    assert f"ghcr.io/org/app@{DIGEST}: allowed, pinned" in err
    assert "contents  1 name: 1 allowed" in err
    [artifact] = json.loads(out)["artifacts"]
    assert artifact["contents"]["references"][0]["places"] == [
        {
            "file": "prod/kustomization.yaml",
            "root": "prod",
            "object": "Pod d/p",
            "pointer": "/spec/containers/0/image",
            "place": "container of a Pod",
        }
    ]
    # asked for by itself, the base is not pinned
    code, _, err = ocipack("verify", place, "--key", public, "--contents", "--root", "base")
    assert code == NO
    assert "contents-unpinned" in err
    # and what nothing builds then is said to be unseen
    code, out, err = ocipack("verify", place, "--key", public, "--contents", "--root", "prod")
    assert code == 0
    assert ocipack("verify", place, "--key", public, "--contents", "--root", "gone")[0] == MISUSE


def test_what_does_not_arrive_is_listed(
    ocipack: Run, site: Callable[..., str], public: str
) -> None:
    place = site(
        OVERLAY | {".sourceignore": ".sourceignore\nold/\n", "old/pod.yaml": pod("nginx:1")}
    )
    code, out, err = ocipack("verify", place, "--key", public, "--contents", "--output", "json")
    assert code == 0, err
    [artifact] = json.loads(out)["artifacts"]
    listed = {one["reason"]: one["names"] for one in artifact["contents"]["notLookedAt"]}
    assert listed["source-controller leaves it out"] == [".sourceignore", "old/pod.yaml"]


def flux(path: str, source: str = "flux-system") -> str:
    return (
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n"
        "metadata: {name: k, namespace: flux-system}\n"
        f"spec: {{path: {path}, sourceRef: {{kind: OCIRepository, name: {source}}}}}\n"
    )


def repository(url: str, name: str = "flux-system") -> str:
    return (
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\n"
        f"metadata: {{name: {name}, namespace: flux-system}}\n"
        f"spec: {{url: '{url}', ref: {{digest: '{DIGEST}'}}}}\n"
    )


DECOY = repository("oci://a.example/x").replace("namespace: flux-system", "namespace: decoys")


def followed() -> str:
    return repository("oci://ghcr.io/x").replace(f"digest: '{DIGEST}'", "tag: dev")


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"clusters/k.yaml": flux("./prod")}, 0),
        ({"clusters/k.yaml": flux("./base")}, NO),
        ({"clusters/k.yaml": flux("./nowhere")}, 0),
        ({"clusters/k.yaml": flux("./")}, 0),  # one Pod twice: kustomize builds nothing of it
        (
            {  # else Flux generates a root over all of it
                "clusters/k.yaml": flux("./"),
                "prod/kustomization.yaml": OVERLAY["prod/kustomization.yaml"] + "namePrefix: p-\n",
            },
            NO,
        ),
        ({"clusters/k.yaml": flux("./base"), "o.yaml": repository("oci://a.example/x")}, 0),
        ({"clusters/k.yaml": flux("./base"), "o.yaml": repository("oci://localhost/site")}, NO),
        # one of that name in another namespace is another source
        ({"clusters/k.yaml": flux("./base"), "o.yaml": DECOY}, NO),
    ],
)
def test_what_flux_builds_of_it_counts(
    ocipack: Run, site: Callable[..., str], public: str, more: dict[str, str], expected: int
) -> None:
    place = site(OVERLAY | more)
    code, _, err = ocipack("verify", place, "--key", public, "--contents")
    assert code == expected, err
    assert ("contents-unpinned" in err) is bool(expected)


def test_what_flux_would_fetch_is_refused(
    ocipack: Run, site: Callable[..., str], public: str
) -> None:
    away = {"away/kustomization.yaml": "resources: ['https://example.com/x']\n"}
    line = ("--key", public, "--contents")
    code, _, err = ocipack("verify", site(OVERLAY | away), *line)
    assert code == NO
    assert "kustomization-address" in err
    # also where only what Flux builds of it leads there
    place = site(OVERLAY | away | {"k.yaml": flux("./away")}, "two")
    code, _, err = ocipack("verify", place, *line, "--root", "prod")
    assert code == NO
    assert "kustomization-address" in err


def test_a_manifest_that_nothing_builds_counts_as_it_stands(
    ocipack: Run, site: Callable[..., str], public: str
) -> None:
    place = site(OVERLAY | {"extra/pod.yaml": pod("nginx:1")})
    code, out, err = ocipack("verify", place, "--key", public, "--contents", "--output", "json")
    assert (code, json.loads(out)["artifacts"][0]["verdict"]) == (NO, "rejected")
    assert verdicts(out) == {f"ghcr.io/org/app@{DIGEST}": "allowed", "nginx:1": "refused"}
    assert "extra/pod.yaml:7:12: error[contents-unpinned] nginx:1 has not a digest" in err


@pytest.mark.parametrize(
    ("contents", "files", "expected", "words"),
    [
        (ALL, {"a.yaml": pod(PINNED)}, 0, ""),
        (ALL, {"a.yaml": pod(TAGGED)}, NO, "contents-unpinned"),
        (ALL + "    requireDigest: false\n", {"a.yaml": pod(TAGGED)}, 0, ""),
        ("    images: [ghcr.io/org/*]\n", {"a.yaml": pod(PINNED)}, 0, ""),
        ("    images: [ghcr.io/other/*]\n", {"a.yaml": pod(PINNED)}, NO, "contents-forbidden"),
        ("    sources: ['**']\n", {"a.yaml": pod(PINNED)}, NO, "contents-forbidden"),
        ("    images: ['**']\n", {"a.yaml": repository("oci://ghcr.io/x")}, NO, "forbidden"),
        ("    sources: ['oci://ghcr.io/*']\n", {"a.yaml": repository("oci://ghcr.io/x")}, 0, ""),
        ("    sources: ['oci://ghcr.io/*']\n", {"a.yaml": repository("oci://q.io/x")}, NO, "not"),
        (ALL, {"a.yaml": followed()}, NO, "oci://ghcr.io/x:dev has not a digest in ref.digest"),
        (ALL + "    follow: ['oci://ghcr.io/*']\n", {"a.yaml": followed()}, 0, ""),
        (ALL, {"a.yaml": pod(PINNED), "b.yaml": CHANGES}, 0, "warning[contents-unseen]"),
        (ALL + UNSEEN, {"a.yaml": pod(PINNED), "b.yaml": CHANGES}, NO, "error[contents-unseen]"),
        (ALL + UNSEEN, {"a.yaml": pod(PINNED), "t.txt": "text"}, 0, ""),
        (ALL, {"a.yaml": pod("'${IMAGE}'")}, NO, "contents-unclear"),
        (ALL, {"a.yaml": pod(PINNED) + "kind: Pod\n"}, NO, "contents-unreadable"),
        ("", {"a.yaml": pod(PINNED)}, NO, "contents-unasked"),
        (
            ALL + excuse("ghcr.io/org/app", 2999),
            {"a.yaml": pod(TAGGED)},
            0,
            "policy p does not judge ghcr.io/org/app:1: t exempts it until 2999-01-01: r",
        ),
        (
            ALL + excuse("ghcr.io/org/app", 2020),
            {"a.yaml": pod(TAGGED)},
            NO,
            "contents-unpinned",
        ),
        (
            ALL + excuse("ghcr.io/org/b", 2999),
            {"a.yaml": pod(TAGGED)},
            NO,
            "contents-unpinned",
        ),
    ],
)  # fmt: skip
def test_what_a_policy_says_of_contents_decides(
    ocipack: Run,
    site: Callable[..., str],
    public: str,
    tmp_path: Path,
    contents: str,
    files: dict[str, str],
    expected: int,
    words: str,
) -> None:
    place = site(files)
    asked = policy(tmp_path / "p.yaml", public, contents)
    assert ocipack("verify", place, "--policy", asked)[0] == 0
    code, out, err = ocipack("verify", place, "--policy", asked, "--contents")
    assert (code, bool(out)) == (expected, expected == 0), err
    assert words in err


def test_a_policy_that_only_warns_of_what_is_not_seen_makes_an_exempted(
    ocipack: Run, site: Callable[..., str], public: str, tmp_path: Path
) -> None:
    place = site({"a.yaml": pod(PINNED), "b.yaml": CHANGES})
    asked = policy(tmp_path / "p.yaml", public, ALL + UNSEEN + "  mode: warn\n")
    code, out, _ = ocipack("verify", place, "--policy", asked, "--contents", "--output", "json")
    assert (code, json.loads(out)["artifacts"][0]["verdict"]) == (0, "exempted")


def test_every_policy_that_covers_the_artifact_is_asked(
    ocipack: Run, site: Callable[..., str], public: str, tmp_path: Path
) -> None:
    place = site({"a.yaml": pod(PINNED)})
    wide = policy(tmp_path / "wide.yaml", public, "    images: ['**']\n")
    narrow = policy(
        tmp_path / "narrow.yaml", public, "    images: [quay.io/**]\n", "localhost/site"
    )
    other = policy(tmp_path / "other.yaml", public, "    images: [quay.io/**]\n", "localhost/x")
    line = ("verify", place, "--contents", "--policy")
    assert ocipack(*line, wide)[0] == 0
    assert ocipack(*line, wide, "--policy", other)[0] == 0
    assert ocipack(*line, wide, "--policy", narrow)[0] == NO
    # one that does not cover the artifact has no say, and alone it lets nothing through
    assert ocipack(*line, other)[0] == NO


def test_a_policy_that_only_warns_makes_an_exempted(
    ocipack: Run, site: Callable[..., str], public: str, tmp_path: Path
) -> None:
    place = site({"a.yaml": pod(TAGGED)})
    lax = policy(tmp_path / "lax.yaml", public, ALL)
    Path(lax).write_text(Path(lax).read_text() + "  mode: warn\n")
    code, out, err = ocipack("verify", place, "--policy", lax, "--contents", "--output", "json")
    assert code == 0, err
    [artifact] = json.loads(out)["artifacts"]
    assert artifact["verdict"] == "exempted"
    assert artifact["waivers"][0]["kind"] == "warned"
    assert "warning[contents-unpinned]" in err
    place = site({"a.yaml": pod(PINNED) + "kind: Pod\n"}, "broken")
    code, out, err = ocipack("verify", place, "--policy", lax, "--contents", "--output", "json")
    assert code == 0, err
    assert json.loads(out)["artifacts"][0]["verdict"] == "exempted"
    assert "warning[contents-unreadable]" in err


def test_what_nobody_trusted_signed_is_never_looked_into(
    ocipack: Run, hello: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = deliver(ocipack, hello, "ocidir://site", key)
    assert ocipack("keys", "generate", "-o", "other", "--quiet")[0] == 0
    monkeypatch.setattr("ocipack.cli.contents.Looking.judge", None)
    code, _, err = ocipack("verify", place, "--key", "other.pub", "--contents")
    assert code == NO
    assert "no signature by a trusted key" in err


class Images:
    """Artifacts that stand for images: signed or not, in a registry."""

    def __init__(self, ocipack: Run, registry: Registry, key: str, top: Path) -> None:
        self._run, self._registry, self._key, self._top = ocipack, registry, key, top

    def put(self, name: str, *, signed: bool = True) -> str:
        """The pinned name of a new image in the registry."""
        top = tree(self._top / name, {"a.yaml": f"# {name}\n"})
        to = f"oci://{self._registry.name}/{name}"
        code, out, err = self._run("pack", str(top), "--to", to, "--allow-dirty")
        assert code == 0, err
        if signed:
            assert self._run("sign", out.strip(), "--key", self._key)[0] == 0
        return out.strip().removeprefix("oci://").replace("@", ":1@")


@pytest.fixture
def images(ocipack: Run, registry: Registry, key: str, tmp_path: Path) -> Images:
    return Images(ocipack, registry, key, tmp_path / "images")


ROOT = "resources: [a.yaml]\n"
VERIFIED = ALL + "    verified: true\n"


def test_each_image_must_be_verified_where_the_policy_says_so(
    ocipack: Run,
    site: Callable[..., str],
    images: Images,
    registry: Registry,
    public: str,
    tmp_path: Path,
) -> None:
    good, bad = images.put("good"), images.put("bad", signed=False)
    asked = policy(tmp_path / "p.yaml", public, VERIFIED)
    plain = policy(tmp_path / "plain.yaml", public, ALL)
    place = site({"a.yaml": pod(good), "b.yaml": pod(good, "q")}, "one")
    registry.requests.clear()
    assert ocipack("verify", place, "--policy", plain, "--contents")[0] == 0
    assert not registry.lines()  # names and pins need no network
    code, _, err = ocipack("verify", place, "--policy", asked, "--contents")
    assert code == 0, err
    digest = good.partition("@")[2]
    assert registry.lines().count(f"GET /v2/good/manifests/{digest}") == 1  # each name once

    place = site({"a.yaml": pod(good), "b.yaml": pod(bad, "q")}, "two")
    code, out, err = ocipack("verify", place, "--policy", asked, "--contents", "--output", "json")
    assert code == NO
    assert verdicts(out) == {good: "allowed", bad: "refused"}
    assert f"error[contents-unverified] {bad}: " in err
    assert "no signature found" in err
    # an exemption of the image in the policy itself is no proof
    waived = tmp_path / "waived.yaml"
    name = bad.partition(":1@")[0]
    text = (
        Path(asked).read_text()
        + "  exemptions: [{images: ['%s'], owner: t, reason: r, until: 2999-01-01}]\n"
    )
    waived.write_text(text % name)
    code, _, err = ocipack("verify", place, "--policy", str(waived), "--contents")
    assert code == NO
    assert "it is exempted, not proven" in err
    # but one of the contents is enough
    waived.write_text(Path(asked).read_text() + excuse(name, 2999))
    assert ocipack("verify", place, "--policy", str(waived), "--contents")[0] == 0


def test_an_image_is_judged_by_the_policies_of_its_own_name(
    ocipack: Run, site: Callable[..., str], images: Images, public: str, tmp_path: Path
) -> None:
    good = images.put("good")
    place = site({"a.yaml": pod(good)})
    asked = policy(tmp_path / "p.yaml", public, VERIFIED, "localhost/site")
    code, _, err = ocipack("verify", place, "--policy", asked, "--contents")
    assert code == NO
    assert f"no policy covers {good}" in err
    registry = good.partition("/")[0]
    own = policy(tmp_path / "own.yaml", public, "", f"'{registry}/**'")
    line = ("verify", place, "--policy", asked, "--policy", own, "--contents")
    assert ocipack(*line)[0] == 0
    assert ocipack("keys", "generate", "-o", "other", "--quiet")[0] == 0
    policy(tmp_path / "own.yaml", str(tmp_path / "other.pub"), "", f"'{registry}/**'")
    assert ocipack(*line)[0] == NO


def test_what_cannot_be_asked_is_neither_yes_nor_no(
    ocipack: Run,
    site: Callable[..., str],
    images: Images,
    registry: Registry,
    public: str,
    tmp_path: Path,
) -> None:
    good, bad = images.put("good"), images.put("bad", signed=False)
    place = site({"a.yaml": pod(good)}, "one")
    both = site({"a.yaml": pod(good), "b.yaml": pod(bad)}, "two")
    asked = policy(tmp_path / "p.yaml", public, VERIFIED)
    registry.switches.faults = [Fault("GET /v2/good/manifests/", 500)]
    code, out, err = ocipack("verify", place, "--policy", asked, "--contents", "--output", "json")
    assert code == UNKNOWN, err
    [artifact] = json.loads(out)["artifacts"]
    assert artifact["verdict"] == "undecided"
    assert verdicts(out) == {good: "undecided"}
    assert ocipack("verify", both, "--policy", asked, "--contents")[0] == NO
    # what is not there is not known either
    gone = good.replace("/good:", "/gone:")
    registry.switches.faults = []
    place = site({"a.yaml": pod(gone)}, "three")
    assert ocipack("verify", place, "--policy", asked, "--contents")[0] == UNKNOWN


def test_a_map_says_where_to_look_and_not_what_it_is_called(
    ocipack: Run, site: Callable[..., str], images: Images, public: str, tmp_path: Path
) -> None:
    mirror = images.put("hub/library/nginx")
    registry, digest = mirror.partition("/")[0], mirror.partition("@")[2]
    place = site({"a.yaml": pod(f"nginx:1@{digest}")})
    (tmp_path / "map.yaml").write_text(f"docker.io: {registry}/hub\n")
    asked = policy(tmp_path / "p.yaml", public, VERIFIED, "localhost/*, 'docker.io/**'")
    line = ("verify", place, "--policy", asked, "--contents")
    code, out, err = ocipack(*line, "--map", "map.yaml", "--output", "json")
    assert code == 0, err
    assert verdicts(out) == {f"nginx:1@{digest}": "allowed"}
    # a policy that knows the mirror alone does not cover it
    other = policy(tmp_path / "q.yaml", public, VERIFIED, f"localhost/*, '{registry}/**'")
    code, _, err = ocipack("verify", place, "--policy", other, "--contents", "--map", "map.yaml")
    assert code == NO
    assert "no policy covers docker.io/library/nginx" in err


@pytest.mark.parametrize("name", ["site", "site.tar"])
def test_a_layout_that_holds_the_images_needs_no_network(
    ocipack: Run,
    hello: Path,
    images: Images,
    registry: Registry,
    key: str,
    public: str,
    tmp_path: Path,
    name: str,
) -> None:
    good, bad = images.put("good"), images.put("bad", signed=False)
    for number, image in enumerate((good, bad)):
        where = f"ocidir://{name}:image-{number}"
        assert ocipack("copy", f"oci://{image}", where, "--allow-unsigned")[0] == 0
    asked = policy(tmp_path / "p.yaml", public, VERIFIED)
    for image, expected in ((good, 0), (bad, NO)):
        shutil.rmtree(hello)
        place = deliver(ocipack, tree(hello, {"a.yaml": pod(image)}), f"ocidir://{name}", key)
        registry.requests.clear()
        code, _, err = ocipack("verify", place, "--policy", asked, "--contents")
        assert code == expected, err
        assert not registry.lines()


def test_an_image_beside_the_artifact_is_hashed_as_a_whole(
    ocipack: Run, hello: Path, images: Images, key: str, public: str, tmp_path: Path
) -> None:
    good = images.put("good")
    assert ocipack("copy", f"oci://{good}", "ocidir://site:i", "--allow-unsigned")[0] == 0
    shutil.rmtree(hello)
    place = deliver(ocipack, tree(hello, {"a.yaml": pod(good)}), "ocidir://site", key)
    asked = policy(tmp_path / "p.yaml", public, VERIFIED)
    assert ocipack("verify", place, "--policy", asked, "--contents")[0] == 0
    blobs = tmp_path / "site/blobs/sha256"
    manifest = json.loads((blobs / good.partition("@sha256:")[2]).read_text())
    layer = blobs / manifest["layers"][0]["digest"][7:]
    data = layer.read_bytes()
    layer.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    code, _, err = ocipack("verify", place, "--policy", asked, "--contents")
    assert code == NO
    assert "contents-unverified" in err


def test_several_artifacts(ocipack: Run, site: Callable[..., str], public: str) -> None:
    good, bad = site({"a.yaml": pod(PINNED)}, "good"), site({"a.yaml": pod(TAGGED)}, "bad")
    line = ("verify", good, bad, "--key", public, "--contents", "--output", "json")
    code, out, err = ocipack(*line)
    assert code == NO
    assert [one["verdict"] for one in json.loads(out)["artifacts"]] == ["verified", "rejected"]
    assert err.count("contents  1 name") == 2
    assert command.BUILT == 2


def test_what_is_no_tree_is_refused(ocipack: Run, key: str, public: str, tmp_path: Path) -> None:
    raw = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [],
        }
    ).encode()
    layout = tmp_path / "site"
    (layout / "blobs/sha256").mkdir(parents=True)
    digest = hashlib.sha256(raw).hexdigest()
    (layout / "blobs/sha256" / digest).write_bytes(raw)
    entry: dict[str, Any] = {
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "digest": f"sha256:{digest}",
        "size": len(raw),
        "annotations": {"org.opencontainers.image.ref.name": "v1"},
    }
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry]}))
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    assert ocipack("sign", "ocidir://site:v1", "--key", key)[0] == 0
    assert ocipack("verify", "ocidir://site:v1", "--key", public)[0] == 0
    code, _, err = ocipack("verify", "ocidir://site:v1", "--key", public, "--contents")
    assert code == NO
    assert "is an index, and an artifact is a single manifest" in err


@pytest.mark.parametrize("option", [("--map", "m.yaml"), ("--root", "prod")])
def test_options_that_belong_to_contents(
    ocipack: Run, public: str, option: tuple[str, str]
) -> None:
    code, _, err = ocipack("verify", "ocidir://s:v1", "--key", public, *option)
    assert code == MISUSE
    assert f"{option[0]} belongs to --contents" in err


def test_a_tar_of_many_names_ends_at_a_number(
    ocipack: Run,
    site: Callable[..., str],
    public: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = site({f"{n}.yaml": pod(f"ghcr.io/org/{n}@{DIGEST}") for n in range(4)})
    asked = policy(tmp_path / "p.yaml", public, VERIFIED)
    monkeypatch.setattr("ocipack.verify.contents.IMAGES", 3)
    code, _, err = ocipack("verify", place, "--policy", asked, "--contents")
    assert code == NO
    assert "more than 3 names in it have to be verified" in err
    monkeypatch.setattr("ocipack.verify.inside.PLACES", 3)
    code, _, err = ocipack("verify", place, "--key", public, "--contents")
    assert code == NO
    assert "more than 3 places in it name something" in err


def test_ship_judges_contents_before_anything_moves(
    ocipack: Run, key: str, public: str, tmp_path: Path
) -> None:
    top = tree(tmp_path / "top", {"kustomization.yaml": ROOT, "a.yaml": pod(TAGGED)})
    line = ("ship", str(top), "--to", "ocidir://out:v1", "--key", key, "--allow-dirty", "--policy")
    strict = policy(tmp_path / "p.yaml", public, ALL)
    code, _, err = ocipack(*line, strict)
    assert code == NO
    assert "error[contents-unpinned] ghcr.io/org/app:1 has not a digest" in err
    assert not (tmp_path / "out").exists()
    # --allow-tags is the flag's; what the policy asks, it cannot take back
    assert ocipack(*line, strict, "--allow-tags")[0] == NO
    # an exemption that has ended
    old = policy(tmp_path / "old.yaml", public, ALL + excuse("ghcr.io/org/*", 2020))
    assert ocipack(*line, old)[0] == NO
    # one that holds, with its owner and day
    held = policy(tmp_path / "held.yaml", public, ALL + excuse("ghcr.io/org/*", 2999))
    code, out, err = ocipack(*line, held)
    assert code == 0, err
    assert "t exempts it until 2999-01-01: r" in err
    assert ocipack("verify", out.strip(), "--policy", held, "--contents")[0] == 0
    assert ocipack("verify", out.strip(), "--policy", strict, "--contents")[0] == NO
    # without contents in the policy the digest is asked for as ever
    silent = policy(tmp_path / "silent.yaml", public)
    code, _, err = ocipack(*line[:3], "ocidir://other:v1", *line[4:], silent)
    assert code == NO
    assert "error[image-digest]" in err


def test_ship_of_what_the_policy_does_not_name(
    ocipack: Run, key: str, public: str, tmp_path: Path
) -> None:
    top = tree(tmp_path / "top", {"kustomization.yaml": ROOT, "a.yaml": pod(PINNED)})
    line = ("ship", str(top), "--to", "ocidir://out:v1", "--key", key, "--allow-dirty", "--policy")
    narrow = policy(tmp_path / "p.yaml", public, "    images: [quay.io/**]\n")
    code, _, err = ocipack(*line, narrow)
    assert code == NO
    assert "contents-forbidden" in err
    # a policy of another name has no say in this one
    other = policy(tmp_path / "o.yaml", public, "    images: [quay.io/**]\n", "localhost/x")
    wide = policy(tmp_path / "w.yaml", public)
    assert ocipack(*line, wide, "--policy", other)[0] == 0


def test_ship_under_a_policy_that_only_warns_of_contents(
    ocipack: Run, key: str, public: str, tmp_path: Path
) -> None:
    top = tree(tmp_path / "top", {"kustomization.yaml": ROOT, "a.yaml": pod(TAGGED)})
    line = ("ship", str(top), "--to", "ocidir://out:v1", "--key", key, "--allow-dirty", "--policy")
    lax = policy(tmp_path / "lax.yaml", public, ALL)
    Path(lax).write_text(Path(lax).read_text() + "  mode: warn\n")
    code, _, err = ocipack(*line, lax)
    assert code == NO
    assert "its contents are exempted, not proven: policy lax" in err
    assert not (tmp_path / "out").exists()
    assert ocipack(*line, lax, "--allow-exempted")[0] == 0


def test_ship_verifies_images_where_the_policy_asks(
    ocipack: Run, images: Images, registry: Registry, key: str, public: str, tmp_path: Path
) -> None:
    good, bad = images.put("good"), images.put("bad", signed=False)
    asked = policy(tmp_path / "p.yaml", public, VERIFIED)
    top = tmp_path / "top"
    line = ("ship", str(top), "--to", "ocidir://out:v1", "--key", key, "--allow-dirty", "--policy")
    tree(top, {"kustomization.yaml": ROOT, "a.yaml": pod(bad)})
    code, _, err = ocipack(*line, asked)
    assert code == NO
    assert "contents-unverified" in err
    assert not (tmp_path / "out").exists()
    tree(top, {"a.yaml": pod(good)})
    assert ocipack(*line, asked)[0] == 0
    registry.switches.faults = [Fault("GET /v2/good/manifests/", 500)]
    tree(top, {"b.yaml": "# another\n"})
    code, _, err = ocipack(*line, asked)
    assert code == UNKNOWN
    assert "nobody knows about its contents" in err
