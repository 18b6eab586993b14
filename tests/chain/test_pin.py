"""`ocipack pin` and `ocipack lock` against registries: what is asked, written, and left alone."""

from __future__ import annotations

import hashlib
import json
import re
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from registry import INDEX, Fault, Registry, Switches

Run = Callable[..., tuple[int, str, str]]
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as made:
        yield made


def digest_of(raw: bytes) -> str:
    return "sha256:" + hashlib.sha256(raw).hexdigest()


def put(registry: Registry, name: str, media_type: str, document: dict[str, Any], tag: str) -> str:
    raw = json.dumps({"schemaVersion": 2, "mediaType": media_type, **document}).encode()
    repository, digest = registry.repository(name), digest_of(raw)
    repository.manifests[digest] = (media_type, raw)
    if tag:
        repository.tags[tag] = digest
    return digest


def manifest(registry: Registry, name: str, tag: str, words: str = "", **more: Any) -> str:
    config = {
        "mediaType": "application/vnd.oci.empty.v1+json",
        "digest": digest_of(b"{}"),
        "size": 2,
    }
    document = {"config": config, "layers": [], "annotations": {"x": words}, **more}
    return put(registry, name, MANIFEST, document, tag)


def serve(registry: Registry, name: str, tag: str, words: str = "") -> str:
    """An image of two platforms under a tag; its index's digest."""
    entries = []
    for architecture in ("amd64", "arm64"):
        digest = manifest(registry, name, "", f"{architecture} {name}:{tag} {words}")
        raw = registry.repository(name).manifests[digest][1]
        platform = {"os": "linux", "architecture": architecture}
        entries.append(
            {"mediaType": MANIFEST, "digest": digest, "size": len(raw), "platform": platform}
        )
    return put(registry, name, INDEX, {"manifests": entries}, tag)


def pod(*images: str) -> str:
    lines = ["apiVersion: v1", "kind: Pod", "metadata: {name: p}", "spec:", "  containers:"]
    for number, image in enumerate(images):
        lines += [f"  - name: c{number}", f"    image: {image}"]
    return "\n".join(lines) + "\n"


def git(*arguments: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_a_thousand_manifests_ask_once_for_each_image(
    ocipack: Run, registry: Registry, tmp_path: Path
) -> None:
    names = [f"team-{n % 20}/app-{n}" for n in range(200)]
    digests = {name: serve(registry, name, "1.0") for name in names}
    for number in range(1000):
        images = [f"{registry.name}/{names[(number * 5 + i) % 200]}:1.0" for i in range(5)]
        style = [images[0], f'"{images[1]}"', f"'{images[2]}' # note", f"&i{number} {images[3]}"]
        text = pod(*style, images[4]) + "\n\n# the end\n"
        text = text.replace("\n", "\r\n") if number % 7 == 0 else text
        path = tmp_path / f"tree/d{number % 10}/f{number}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    git("init", "-q")
    git("add", "tree")
    git("-c", "core.autocrlf=false", "commit", "-q", "-m", "before")

    code, out, err = ocipack("pin", "tree")
    assert (code, len(out.splitlines())) == (0, 1000)
    assert "5,000 images in 1,000 files" in err
    asked = registry.lines()
    assert sorted(asked) == sorted(f"HEAD /v2/{name}/manifests/1.0" for name in names)

    removed, added = [], []
    for line in git("diff", "--unified=0", "--no-color").split("\n"):
        if line.startswith("-") and not line.startswith("---"):
            removed.append(line[1:])
        elif line.startswith("+") and not line.startswith("+++"):
            added.append(line[1:])
    assert len(removed) == len(added) == 5000
    pin = re.compile(r"/(team-\d+/app-\d+):1\.0@(sha256:[0-9a-f]{64})")
    for old, new in zip(removed, added, strict=True):
        match = pin.search(new)
        assert match is not None
        assert match[2] == digests[match[1]]
        assert new.replace(f"@{match[2]}", "") == old

    code, out, err = ocipack("pin", "tree")
    assert (code, out) == (0, "")
    assert registry.lines() == asked
    assert ocipack("pin", "tree", "--check")[0] == 0


@pytest.fixture
def tree(registry: Registry, tmp_path: Path) -> Path:
    """Two files, three images; one of them is not in the registry."""
    serve(registry, "a", "1")
    serve(registry, "b", "latest")
    path = tmp_path / "tree"
    path.mkdir()
    (path / "one.yaml").write_text(pod(f"{registry.name}/a:1", f"{registry.name}/gone:1"))
    (path / "two.yml").write_text(pod(f"{registry.name}/b", f"{registry.name}/a:1"))
    return path


def test_one_image_that_is_not_there_keeps_no_other_from_being_pinned(
    ocipack: Run, registry: Registry, tree: Path
) -> None:
    code, out, err = ocipack("pin", "tree")
    assert (code, out) == (3, "tree/one.yaml\ntree/two.yml\n")
    assert f"error: {registry.name}/gone:1: " in err
    assert err.count("error:") == 1
    tags = {name: registry.repository(name).tags for name in ("a", "b")}
    assert (tree / "one.yaml").read_text() == pod(
        f"{registry.name}/a:1@{tags['a']['1']}", f"{registry.name}/gone:1"
    )
    assert (tree / "two.yml").read_text() == pod(
        f"{registry.name}/b:latest@{tags['b']['latest']}", f"{registry.name}/a:1@{tags['a']['1']}"
    )
    serve(registry, "gone", "1")
    assert ocipack("pin", "tree")[:2] == (0, "tree/one.yaml\n")


def test_check_asks_nobody_and_writes_nothing(ocipack: Run, registry: Registry, tree: Path) -> None:
    before = {path: path.read_bytes() for path in tree.iterdir()}
    code, out, err = ocipack("pin", "tree", "--check")
    assert (code, out) == (1, "")
    assert err.count("error[image-digest]") == 4
    assert "tree/one.yaml:7:12: error" in err
    assert registry.lines() == []
    assert {path: path.read_bytes() for path in tree.iterdir()} == before
    assert not Path("ocipack.lock").exists()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (pod("a/b:${TAG}"), 1),
        (pod("*missing"), 1),
        (pod("a/b@sha256:" + "0" * 64), 0),
        ("kind: ConfigMap\napiVersion: v1\ndata: {image: 'a:1'}\n", 0),
        ("image: [\n", 1),
    ],
)
def test_what_nobody_can_say_is_not_pinned(ocipack: Run, text: str, code: int) -> None:
    Path("f.yaml").write_text(text)
    assert ocipack("pin", "f.yaml", "--check")[0] == code


def test_no_manifests_is_no(ocipack: Run, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    code, _, err = ocipack("pin", "tree", "--check")
    assert (code, "no manifests" in err) == (1, True)
    code, _, err = ocipack("pin", "nowhere")
    assert (code, "no such file" in err) == (2, True)


def test_diff_shows_and_writes_nothing(ocipack: Run, registry: Registry, tree: Path) -> None:
    serve(registry, "gone", "1")
    (tree / "one.yaml").write_bytes((tree / "one.yaml").read_bytes().replace(b"\n", b"\r\n")[:-2])
    code, out, _ = ocipack("pin", "tree", "--diff", "--lock", "x.lock")
    assert code == 0
    assert "@sha256" not in (tree / "one.yaml").read_text()
    assert not Path("x.lock").exists()
    assert out.startswith("--- a/tree/one.yaml\n+++ b/tree/one.yaml\n")
    subprocess.run(["git", "apply", "-"], input=out.encode(), check=True)
    assert ocipack("pin", "tree", "--check")[0] == 0
    code, _, _ = ocipack("pin", "tree", "--diff", "--check")
    assert code == 0


def test_diff_and_check_say_no_while_something_is_missing(ocipack: Run, tree: Path) -> None:
    serve_all = (tree / "one.yaml").read_text()
    assert "gone" in serve_all
    (tree / "one.yaml").unlink()
    code, out, _ = ocipack("pin", "tree", "--diff", "--check")
    assert (code, "+    image" in out) == (1, True)


def test_why_says_where_and_how(ocipack: Run, registry: Registry, tree: Path) -> None:
    code, out, _ = ocipack("pin", "tree", "--why", f"{registry.name}/a:1")
    assert code == 0
    assert [line.split("  ")[0] for line in out.splitlines()] == [
        "tree/one.yaml:7:12",
        "tree/two.yml:9:12",
    ]
    assert "certain  container of a Pod  /spec/containers/0/image" in out
    code, _, err = ocipack("pin", "tree", "--why", "nginx")
    assert (code, "not named" in err) == (1, True)
    assert registry.lines() == []
    assert tree.exists()


def test_json_lists_every_place(ocipack: Run, registry: Registry, tree: Path) -> None:
    code, out, _ = ocipack("pin", "tree", "--output", "json")
    document = json.loads(out)
    assert (code, document["exitCode"]) == (3, 3)
    assert document["files"] == {"read": 2, "changed": ["tree/one.yaml", "tree/two.yml"]}
    first = document["images"][0]
    assert first["digest"] == registry.repository("a").tags["1"]
    assert (first["file"], first["line"], first["status"]) == ("tree/one.yaml", 7, "open")
    assert tree.exists()


def test_an_image_of_one_platform_is_worth_a_word(ocipack: Run, registry: Registry) -> None:
    manifest(registry, "single", "1")
    Path("f.yaml").write_text(pod(f"{registry.name}/single:1", f"{registry.name}/single:1"))
    code, _, err = ocipack("pin", "f.yaml")
    assert (code, err.count("warning[image-platform]")) == (0, 1)


def test_a_chart_is_no_image_of_one_platform(ocipack: Run, registry: Registry) -> None:
    digest = manifest(registry, "chart", "1.0")
    Path("f.yaml").write_text(
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: c}\n"
        f"spec:\n  url: oci://{registry.name}/chart\n  ref:\n    tag: '1.0' # c\n"
    )
    code, _, err = ocipack("pin", "f.yaml")
    assert (code, "warning" in err) == (0, False)
    assert Path("f.yaml").read_text().endswith(f"    tag: '1.0' # c\n    digest: {digest}\n")


def test_a_tag_that_is_pinned_to_something_older_elsewhere_is_worth_a_word(
    ocipack: Run, registry: Registry
) -> None:
    serve(registry, "a", "1")
    Path("f.yaml").write_text(pod(f"{registry.name}/a:1@sha256:{'0' * 64}", f"{registry.name}/a:1"))
    code, _, err = ocipack("pin", "f.yaml")
    assert (code, err.count("warning[image-moved]")) == (0, 1)
    assert f"a:1@sha256:{'0' * 64}" in Path("f.yaml").read_text()


def test_confirm_notices_a_tag_that_moves_meanwhile(
    ocipack: Run, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = serve(registry, "a", "1")
    head = registry._manifests_head

    def moving(name: str, *rest: Any) -> Any:
        reply = head(name, *rest)
        serve(registry, "a", "1", "new")
        return reply

    monkeypatch.setattr(registry, "_manifests_head", moving, raising=False)
    Path("f.yaml").write_text(pod(f"{registry.name}/a:1"))
    code, _, err = ocipack("pin", "f.yaml", "--confirm")
    assert (code, err.count("warning[image-moved]")) == (0, 1)
    assert "moved during the run" in err
    assert old in Path("f.yaml").read_text()


def test_what_is_no_image_is_not_pinned(ocipack: Run, registry: Registry) -> None:
    put(registry, "a", "application/vnd.docker.distribution.manifest.v1+json", {}, "1")
    Path("f.yaml").write_text(pod(f"{registry.name}/a:1"))
    code, out, err = ocipack("pin", "f.yaml")
    assert (code, out) == (3, "")
    assert "Docker's first format" in err


# files


def test_mode_and_links_are_kept(ocipack: Run, registry: Registry, tmp_path: Path) -> None:
    serve(registry, "a", "1")
    outside = tmp_path / "outside"
    outside.mkdir()
    text = pod(f"{registry.name}/a:1")
    for path in ("outside/a.yaml", "outside/linked.yaml"):
        Path(path).write_text(text)
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "f.yaml").write_text(text)
    (tree / "f.yaml").chmod(0o640)
    (tree / "link.yaml").symlink_to(outside / "linked.yaml")
    (tree / "dir").symlink_to(outside)
    assert ocipack("pin", "tree")[:2] == (0, "tree/f.yaml\n")
    assert stat.S_IMODE((tree / "f.yaml").stat().st_mode) == 0o640
    assert Path("outside/a.yaml").read_text() == Path("outside/linked.yaml").read_text() == text
    assert (tree / "link.yaml").is_symlink()
    assert sorted(path.name for path in tree.iterdir()) == ["dir", "f.yaml", "link.yaml"]
    code, _, err = ocipack("pin", "tree/link.yaml")
    assert (code, "a link" in err) == (2, True)


def test_a_file_that_is_named_twice_is_changed_once(ocipack: Run, tree: Path) -> None:
    code, out, _ = ocipack("pin", "tree/two.yml", "tree", str(tree), "./tree/two.yml")
    assert (code, sorted(out.split())) == (3, ["tree/one.yaml", "tree/two.yml"])


def test_kustomize_builds_what_was_pinned(ocipack: Run, registry: Registry) -> None:
    digest = serve(registry, "a", "706798e8")
    Path("app").mkdir()
    Path("app/pod.yaml").write_text(pod("app:1", "app:2"))
    Path("app/kustomization.yaml").write_text(
        "resources: [pod.yaml]\nimages:\n- name: app\n"
        f"  newName: {registry.name}/a\n  newTag: 706798e8 # as git has it\n"
    )
    code, out, err = ocipack("pin", "app")
    assert (code, out) == (0, "app/kustomization.yaml\n"), err
    assert (
        f'newTag: "706798e8@{digest}" # as git has it\n'
        in Path("app/kustomization.yaml").read_text()
    )
    code, out, err = ocipack("render", "app")
    assert code == 0, err
    assert out.count(f"image: {registry.name}/a:706798e8@{digest}") == 2
    assert ocipack("pin", "app", "--check")[0] == 0


# mirrors and locks


def test_a_mirror_is_asked_and_the_name_stays(ocipack: Run, registry: Registry) -> None:
    digest = serve(registry, "hub/library/nginx", "1.25")
    serve(registry, "team/app", "1")
    Path("m.yaml").write_text(
        f"docker.io: {registry.name}/hub\nghcr.io/team: {registry.name}/team\n"
    )
    Path("f.yaml").write_text(pod("nginx:1.25", "ghcr.io/team/app:1"))
    code, _, err = ocipack("pin", "f.yaml", "--map", "m.yaml", "--lock", "x.lock")
    assert code == 0, err
    assert f"image: nginx:1.25@{digest}\n" in Path("f.yaml").read_text()
    assert "- reference: docker.io/library/nginx:1.25\n" in Path("x.lock").read_text()
    code, out, _ = ocipack("lock", "check", "x.lock", "--map", "m.yaml")
    assert (code, out.count("unchanged")) == (0, 2)


@pytest.mark.parametrize(
    "text", ["- a\n", "a: b\n", "docker.io: [x]\n", "docker.io: r.io/a:1\n", "a: &x b\n"]
)
def test_a_map_that_says_nothing_is_misuse(ocipack: Run, text: str) -> None:
    Path("m.yaml").write_text(text)
    Path("f.yaml").write_text(pod("nginx:1.25"))
    assert ocipack("pin", "f.yaml", "--map", "m.yaml")[0] == 2


@pytest.fixture
def locked(ocipack: Run, registry: Registry, tree: Path) -> str:
    """The tree pinned and locked; `a` is signed by a tag and by a referrer."""
    serve(registry, "gone", "1")
    digest = registry.repository("a").tags["1"]
    manifest(registry, "a", f"sha256-{digest[7:]}.sig", "signature")
    raw = registry.repository("a").manifests[digest][1]
    subject = {"mediaType": INDEX, "digest": digest, "size": len(raw)}
    manifest(registry, "a", "", "bundle", subject=subject, artifactType="application/x")
    code, _, err = ocipack("pin", str(tree.relative_to(Path.cwd())), "--lock", "ocipack.lock")
    assert code == 0, err
    return Path("ocipack.lock").read_text()


def test_a_lock_says_what_everything_resolved_to(
    ocipack: Run, registry: Registry, tree: Path, locked: str
) -> None:
    assert locked.count("- reference: ") == 3
    assert locked.count("    architecture: arm64\n") == 3
    assert locked.count("  - via: ") == 2
    assert (
        "  - file: tree/one.yaml\n    document: 0\n    pointer: /spec/containers/0/image\n"
        in locked
    )
    # a second run, all pinned, finds the lock by itself and says the same
    before = (tree / "one.yaml").read_bytes()
    code, out, _ = ocipack("pin", "tree")
    assert (code, out) == (0, "")
    assert Path("ocipack.lock").read_text() == locked
    assert (tree / "one.yaml").read_bytes() == before
    code, out, _ = ocipack("lock", "show")
    assert code == 0
    assert f"{registry.name}/a:1  {registry.repository('a').tags['1']}  2 platforms" in out


def test_a_lock_reads_each_index_once(ocipack: Run, registry: Registry, tree: Path) -> None:
    serve(registry, "gone", "1")
    assert ocipack("pin", str(tree), "--lock", "x.lock")[0] == 0
    gets = registry.lines("^GET .*/manifests/(1|latest|sha256:)")
    assert sorted(gets) == [
        "GET /v2/a/manifests/1",
        "GET /v2/b/manifests/latest",
        "GET /v2/gone/manifests/1",
    ]


def test_offline_the_lock_answers(
    ocipack: Run, registry: Registry, tree: Path, locked: str
) -> None:
    pinned = (tree / "two.yml").read_text()
    (tree / "two.yml").write_text(re.sub("(:latest)?@sha256:[0-9a-f]+", "", pinned))
    asked = len(registry.requests)
    assert ocipack("pin", "tree", "--offline")[:2] == (0, "tree/two.yml\n")
    assert (tree / "two.yml").read_text() == pinned
    (tree / "three.yaml").write_text(pod("nginx:1"))
    code, _, err = ocipack("pin", "tree", "--offline")
    assert (code, "not in the lock" in err) == (3, True)
    assert len(registry.requests) == asked
    assert Path("ocipack.lock").read_text() == locked
    Path("ocipack.lock").unlink()
    assert ocipack("pin", "tree", "--offline")[0] == 2


def test_a_lock_that_was_edited_by_hand_decides_nothing(
    ocipack: Run, registry: Registry, tree: Path, locked: str
) -> None:
    """With the network every reference is asked for again; what the lock says is only compared."""
    true = registry.repository("a").tags["1"]
    false = "sha256:" + "6" * 64
    Path("ocipack.lock").write_text(locked.replace(f"digest: {true}", f"digest: {false}", 1))
    (tree / "one.yaml").write_text(pod(f"{registry.name}/a:1"))
    code, _, err = ocipack("lock", "check")
    assert code == 1
    code, _, err = ocipack("pin", "tree")
    assert (code, err.count("warning[image-moved]")) == (0, 1)
    assert (tree / "one.yaml").read_text() == pod(f"{registry.name}/a:1@{true}")
    assert false not in Path("ocipack.lock").read_text()


def standings(out: str) -> dict[str, str]:
    entries = json.loads(out)["entries"]
    return {entry["reference"].rpartition("/")[2]: entry["standing"] for entry in entries}


def test_lock_check_tells_apart_what_can_happen(
    ocipack: Run, registry: Registry, locked: str
) -> None:
    assert locked
    code, out, _ = ocipack("lock", "check", "--output", "json")
    assert (code, set(standings(out).values())) == (0, {"unchanged"})
    assert not [line for line in registry.lines() if line.startswith(("PUT", "POST"))]

    new = serve(registry, "b", "latest", "new")
    code, out, _ = ocipack("lock", "check", "--output", "json")
    assert code == 1
    assert standings(out) == {"a:1": "unchanged", "b:latest": "moved", "gone:1": "unchanged"}
    moved = [entry for entry in json.loads(out)["entries"] if entry["standing"] == "moved"]
    assert moved[0]["now"] == new

    del registry.repositories["gone"]
    repository = registry.repository("a")
    (sig,) = [tag for tag in repository.tags if tag.endswith(".sig")]
    del repository.tags[sig]
    code, out, _ = ocipack("lock", "check", "--output", "json")
    assert code == 1
    assert standings(out) == {"a:1": "signature lost", "b:latest": "moved", "gone:1": "gone"}
    code, out, _ = ocipack("lock", "check")
    assert (code, sig in out) == (1, True)


def test_a_referrer_that_is_gone_is_lost(ocipack: Run, registry: Registry, locked: str) -> None:
    assert locked
    found = registry.repository("a").manifests
    for digest in [d for d, (_, raw) in found.items() if b'"subject"' in raw]:
        del found[digest]
    code, out, _ = ocipack("lock", "check", "--output", "json")
    assert (code, standings(out)["a:1"]) == (1, "signature lost")


def test_what_cannot_be_asked_is_undecided(ocipack: Run, registry: Registry, locked: str) -> None:
    assert locked
    registry.switches.faults.append(Fault("/v2/b/", status=401, body=b"{}"))
    code, out, err = ocipack("lock", "check", "--output", "json")
    assert (code, standings(out)["b:latest"]) == (3, "undecided")
    assert "error: " in err
    del registry.repositories["gone"]  # a no that is sure stays a no
    assert ocipack("lock", "check")[0] == 1


def test_a_failed_reference_stays_in_the_lock_as_it_was(
    ocipack: Run, registry: Registry, tree: Path, locked: str
) -> None:
    registry.switches.faults.append(Fault("/v2/b/", status=403, body=b"{}"))
    assert ocipack("pin", str(tree))[0] == 3
    kept = Path("ocipack.lock").read_text()
    assert f"- reference: {registry.name}/b:latest\n" in kept
    assert kept == locked


def test_an_empty_lock_is_no(ocipack: Run) -> None:
    Path("ocipack.lock").write_text("apiVersion: ocipack.dev/v1alpha1\nkind: Lock\nentries: []\n")
    assert ocipack("lock", "check")[0] == 1
    assert ocipack("lock", "show")[0] == 1
    Path("ocipack.lock").write_text("entries: no\n")
    assert ocipack("lock", "check")[0] == 2


def test_a_registry_without_referrers_still_has_locks(ocipack: Run) -> None:
    with Registry(Switches(referrers=False)) as old:
        serve(old, "a", "1")
        Path("f.yaml").write_text(pod(f"{old.name}/a:1"))
        assert ocipack("pin", "f.yaml", "--lock", "x.lock")[0] == 0
        assert ocipack("lock", "check", "x.lock")[0] == 0


def test_names_and_texts_of_strangers_stay_text(ocipack: Run, registry: Registry) -> None:
    serve(registry, "a", "1")
    Path("x\x1b[2J\u202e.yaml").write_text(pod(f"{registry.name}/a:1", "'::error::${X}\u202e'"))
    for extra in (["--diff"], ["--check"], ["--why", f"{registry.name}/a:1"], []):
        _, out, err = ocipack("pin", ".", *extra)
        assert not set("\x1b\u202e") & set(err)
        shown = out if "--diff" not in extra else "\n".join(out.splitlines()[:2])
        assert not set("\x1b\u202e") & set(shown)
