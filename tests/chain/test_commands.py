"""Every command on real input, and its refusals: exit code, one clear sentence, nothing left."""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ocipack.verify import verify

Run = Callable[..., tuple[int, str, str]]

DIGEST = "sha256:" + "0" * 64
NOT_FOUND, NO, MISUSE, UNKNOWN = 3, 1, 2, 3


def site(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / "index.json").read_text())
    return found


def tags(path: Path) -> dict[str, str]:
    return {
        entry["annotations"]["org.opencontainers.image.ref.name"]: entry["digest"]
        for entry in site(path)["manifests"]
        if "org.opencontainers.image.ref.name" in entry.get("annotations", {})
    }


def files(path: Path) -> dict[str, tuple[int, str]]:
    """Every file with its time and content: what a run that writes nothing leaves alone."""
    return {
        str(file.relative_to(path)): (
            file.stat().st_mtime_ns,
            hashlib.sha256(file.read_bytes()).hexdigest(),
        )
        for file in path.rglob("*")
        if file.is_file()
    }


def ship(ocipack: Run, tree: Path, key: str, to: str = "ocidir://site:v1", *more: str) -> str:
    code, out, err = ocipack("ship", str(tree), "--to", to, "--key", key, *more)
    assert code == 0, err
    return out.strip()


def test_ship_delivers_and_says_what(
    ocipack: Run, hello: Path, key: str, public: str, tmp_path: Path
) -> None:
    code, out, err = ocipack("ship", str(hello), "--to", "ocidir://site:v1", "--key", key)
    assert code == 0
    digest = tags(tmp_path / "site")["v1"]
    assert out == f"ocidir://{tmp_path}/site:v1@{digest}\n"
    assert tags(tmp_path / "site").keys() == {
        "v1",
        f"v1-{digest[7:19]}",
        f"sha256-{digest[7:]}",
        f"sha256-{digest[7:]}.sig",
    }
    stages = [line.split()[0] for line in err.splitlines() if line]
    assert stages[:6] == ["pack", "render", "copy", "sign", "verify", "tag"]
    assert "legacy, bundle by" in err
    code, proven, _ = ocipack("verify", "ocidir://site:v1", "--key", public)
    assert (code, proven) == (0, out)


def test_shipping_again_is_unchanged_and_writes_nothing(
    ocipack: Run, hello: Path, key: str, tmp_path: Path
) -> None:
    first = ship(ocipack, hello, key)
    before = files(tmp_path / "site")
    code, out, err = ocipack("ship", str(hello), "--to", "ocidir://site:v1", "--key", key)
    assert (code, out.strip()) == (0, first)
    assert "unchanged" in err
    assert files(tmp_path / "site") == before


def test_what_moves_when_the_tree_changes(
    ocipack: Run, hello: Path, key: str, tmp_path: Path
) -> None:
    ship(ocipack, hello, key)
    old = tags(tmp_path / "site")
    (hello / "settings.yaml").write_text((hello / "settings.yaml").read_text() + "# more\n")
    ship(ocipack, hello, key)
    new = tags(tmp_path / "site")
    assert new["v1"] != old["v1"]
    assert old.items() - {("v1", old["v1"])} <= new.items()


def test_an_annotation_that_the_user_asks_for_is_a_change(
    ocipack: Run, hello: Path, key: str
) -> None:
    first = ship(ocipack, hello, key)
    assert ship(ocipack, hello, key, "ocidir://site:v1", "--annotation", "team=shop") != first


def test_a_dry_run_says_what_would_be_and_writes_nothing(
    ocipack: Run, hello: Path, key: str, tmp_path: Path
) -> None:
    code, out, err = ocipack(
        "ship", str(hello), "--to", "ocidir://site:v1", "--key", key, "--dry-run"
    )
    assert code == 0
    assert "would ship" in err
    assert not (tmp_path / "site").exists()
    assert ship(ocipack, hello, key) == out.strip()


def test_without_a_tag_the_tag_is_latest(ocipack: Run, hello: Path, key: str) -> None:
    assert "/site:latest@sha256:" in ship(ocipack, hello, key, "ocidir://site")


def test_a_destination_with_a_digest_takes_exactly_that_digest(
    ocipack: Run, hello: Path, key: str, tmp_path: Path
) -> None:
    code, _, err = ocipack("ship", str(hello), "--to", f"ocidir://site:v1@{DIGEST}", "--key", key)
    assert code == NO
    assert "asks for another digest" in err
    assert not (tmp_path / "site").exists()
    digest = ship(ocipack, hello, key, "ocidir://other:v1").partition("@")[2]
    ship(ocipack, hello, key, f"ocidir://site:v1@{digest}")


def test_the_json_of_a_ship(ocipack: Run, hello: Path, key: str, tmp_path: Path) -> None:
    code, out, _ = ocipack(
        *("ship", str(hello), "--to", "ocidir://site:v1", "--key", key, "--output", "json")
    )
    said = json.loads(out)
    digest = tags(tmp_path / "site")["v1"]
    assert code == said["exitCode"] == 0
    assert said["state"] == "shipped"
    assert said["artifact"]["digest"] == digest
    assert said["objects"] == 5
    assert said["signature"]["forms"] == ["legacy", "bundle"]
    assert said["tags"] == [f"v1-{digest[7:19]}", "v1"]


def test_a_finding_stops_a_ship_before_anything_is_written(
    ocipack: Run, hello: Path, key: str, tmp_path: Path
) -> None:
    manifest = hello / "deployment.yaml"
    manifest.write_text(manifest.read_text().replace("@sha256:", "-sha256-"))
    code, out, err = ocipack("ship", str(hello), "--to", "ocidir://site:v1", "--key", key)
    assert code == NO
    assert out == ""
    assert "error[image-digest]" in err
    assert "hint: " in err
    assert not (tmp_path / "site").exists()


def test_a_tag_that_somebody_moved_during_the_run_is_left_alone(
    ocipack: Run, hello: Path, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ship(ocipack, hello, key)
    (hello / "settings.yaml").write_text((hello / "settings.yaml").read_text() + "# other\n")
    other = ship(ocipack, hello, key, "ocidir://site:other").partition("@")[2]
    (hello / "settings.yaml").write_text((hello / "settings.yaml").read_text() + "# ours\n")

    def meddle(*arguments: Any, **options: Any) -> Any:
        index = site(tmp_path / "site")
        for entry in index["manifests"]:
            if entry.get("annotations", {}).get("org.opencontainers.image.ref.name") == "v1":
                entry["digest"] = other
        (tmp_path / "site" / "index.json").write_text(json.dumps(index))
        return verify(*arguments, **options)

    monkeypatch.setattr("ocipack.ship.verify", meddle)
    code, _, err = ocipack("ship", str(hello), "--to", "ocidir://site:v1", "--key", key)
    assert code == NO
    assert other in err
    assert tags(tmp_path / "site")["v1"] == other


def test_content_under_the_tag_that_is_not_signed_by_us_is_not_unchanged(
    ocipack: Run, hello: Path, key: str, tmp_path: Path
) -> None:
    code, out, _ = ocipack("pack", str(hello), "--to", "ocidir://site")
    assert code == 0
    assert ocipack("tag", out.strip(), "v1", "--allow-unsigned")[0] == 0
    code, _, err = ocipack("ship", str(hello), "--to", "ocidir://site:v1", "--key", key)
    assert code == 0
    assert "shipped" in err
    assert f"sha256-{tags(tmp_path / 'site')['v1'][7:]}.sig" in tags(tmp_path / "site")


def test_pack_prints_a_digest_and_lists_what_goes_in(ocipack: Run, hello: Path) -> None:
    (hello / "photo.png").write_bytes(b"x")
    (hello / "run.sh").write_text("echo\n")
    (hello / "run.sh").chmod(0o755)
    code, out, _ = ocipack("pack", str(hello))
    assert code == 0
    assert out.startswith("sha256:")
    assert len(out) == 72
    code, listing, _ = ocipack("pack", str(hello), "--list", "--ignore", "settings.yaml")
    names = [line.split()[-1] for line in listing.splitlines()]
    assert code == 0
    assert names == sorted(names)
    assert "photo.png" not in names
    assert "settings.yaml" not in names
    assert "x          5 run.sh" in listing


def test_pack_into_a_layout_gives_no_tag(ocipack: Run, hello: Path, tmp_path: Path) -> None:
    code, out, _ = ocipack("pack", str(hello), "--to", "ocidir://out")
    assert code == 0
    assert out.startswith(f"ocidir://{tmp_path}/out@sha256:")
    assert tags(tmp_path / "out") == {}
    code, _, err = ocipack("pack", str(hello), "--to", "ocidir://out:v1")
    assert code == MISUSE
    assert "nothing is signed yet" in err


def test_commands_chain_through_standard_input(
    ocipack: Run,
    hello: Path,
    key: str,
    public: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    def piped(text: str) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))

    _, made, _ = ocipack("pack", str(hello), "--to", "ocidir://out")
    piped(made)
    code, signed, _ = ocipack("sign", "-", "--key", key)
    assert (code, signed) == (0, made)
    piped(signed)
    code, tagged, _ = ocipack("tag", "-", "v1", "--key", public)
    assert code == 0
    piped(tagged)
    code, directory, _ = ocipack("pull", "-", "--key", public, "-o", "tree")
    assert (code, directory) == (0, "tree\n")
    assert (tmp_path / "tree/settings.yaml").read_bytes() == (hello / "settings.yaml").read_bytes()
    piped("one two")
    assert ocipack("verify", "-", "--key", public)[0] == MISUSE
    piped("")
    assert ocipack("verify", "-", "--key", public)[0] == MISUSE


def test_render_prints_documents_and_nothing_when_refused(ocipack: Run, shop: Path) -> None:
    code, out, _ = ocipack("render", str(shop), "--root", "overlays/staging")
    assert code == 0
    assert out.count("\nkind: ") + out.startswith("kind: ") >= 10
    code, out, err = ocipack("render", str(shop), "--root", "nowhere")
    assert (code, out) == (MISUSE, "")
    assert "not a directory of the packed tree" in err
    secret = shop / "base/secret.yaml"
    secret.write_text(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: hunter2}\n"
    )
    kustomization = shop / "base/kustomization.yaml"
    kustomization.write_text(
        kustomization.read_text().replace("resources:", "resources:\n  - secret.yaml", 1)
    )
    code, out, err = ocipack("render", str(shop))
    assert (code, out) == (NO, "")
    assert "plaintext" in err
    assert "hunter2" not in err


def test_allow_tags_turns_unpinned_images_into_warnings(ocipack: Run, hello: Path) -> None:
    manifest = hello / "deployment.yaml"
    text = manifest.read_text()
    start = text.index("@sha256:")
    manifest.write_text(text[:start] + text[start + 72 :])
    assert ocipack("render", str(hello))[0] == NO
    code, out, err = ocipack("render", str(hello), "--allow-tags")
    assert code == 0
    assert "warning[image-digest]" in err
    assert out


def test_verify_says_no_and_why(ocipack: Run, hello: Path, key: str, public: str) -> None:
    _, made, _ = ocipack("pack", str(hello), "--to", "ocidir://out")
    code, out, err = ocipack("verify", made.strip(), "--key", public)
    assert (code, out) == (NO, "")
    assert "no signature found" in err
    assert ocipack("keys", "generate", "-o", "stranger")[0] == 0
    ship(ocipack, hello, key)
    code, _, err = ocipack("verify", "ocidir://site:v1", "--key", "stranger.pub")
    assert code == NO
    assert "signature-foreign" in err
    code, _, err = ocipack("verify", "ocidir://site:v2", "--key", public)
    assert code == NOT_FOUND
    assert "there is no tag v2" in err
    code, _, err = ocipack("verify", "ocidir://absent:v1", "--key", public)
    assert code == NOT_FOUND


def test_verify_needs_as_many_keys_as_the_threshold(
    ocipack: Run, hello: Path, key: str, public: str
) -> None:
    ship(ocipack, hello, key)
    ocipack("keys", "generate", "-o", "second")
    both = ("--key", public, "--key", "second.pub", "--threshold", "2")
    assert ocipack("verify", "ocidir://site:v1", *both)[0] == NO
    assert ocipack("sign", "ocidir://site:v1", "--key", "second.key")[0] == 0
    code, _, err = ocipack("verify", "ocidir://site:v1", *both, "--explain")
    assert code == 0
    assert err.count("signature-good") == 2
    assert ocipack("verify", "ocidir://site:v1", "--key", public, "--threshold", "2")[0] == MISUSE
    assert ocipack("verify", "ocidir://site:v1", "--key", public, "--threshold", "0")[0] == MISUSE


def test_require_digest_refuses_a_tag(ocipack: Run, hello: Path, key: str, public: str) -> None:
    pinned = ship(ocipack, hello, key)
    code, _, err = ocipack("verify", "ocidir://site:v1", "--key", public, "--require-digest")
    assert code == MISUSE
    assert "--require-digest" in err
    assert ocipack("verify", pinned, "--key", public, "--require-digest")[0] == 0


def test_verify_looks_at_all_places_and_the_worst_that_is_known_decides(
    ocipack: Run, hello: Path, key: str, public: str
) -> None:
    good = ship(ocipack, hello, key)
    unsigned = ocipack("pack", str(hello), "--to", "ocidir://out")[1].strip()
    code, out, _ = ocipack("verify", good, good, "--key", public)
    assert (code, out) == (0, f"{good}\n{good}\n")
    code, out, err = ocipack("verify", good, "ocidir://absent:v1", "--key", public)
    assert (code, out) == (UNKNOWN, f"{good}\n")
    assert "absent" in err
    code, out, _ = ocipack("verify", good, "ocidir://absent:v1", unsigned, "--key", public)
    assert (code, out) == (NO, f"{good}\n")
    code, out, _ = ocipack("verify", good, unsigned, "--key", public, "--output", "json")
    assert [one["verdict"] for one in json.loads(out)["artifacts"]] == ["verified", "rejected"]


@pytest.mark.parametrize("what", ["manifest", "config", "layer"])
def test_content_that_was_altered_in_a_layout_is_refused(
    ocipack: Run, hello: Path, key: str, public: str, tmp_path: Path, what: str
) -> None:
    digest = ship(ocipack, hello, key).partition("@")[2]
    path = tmp_path / "site/blobs/sha256" / digest[7:]
    document = json.loads(path.read_text())
    if what != "manifest":
        child = document["layers"][0] if what == "layer" else document["config"]
        path = path.parent / child["digest"][7:]
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)
    code, out, err = ocipack("verify", "ocidir://site:v1", "--key", public)
    assert (code, out) == (NO, "")
    assert path.name in err
    code, _, _ = ocipack("pull", "ocidir://site:v1", "--key", public, "-o", "tree")
    assert code == NO
    assert not (tmp_path / "tree").exists()
    before = tags(tmp_path / "site")
    assert ocipack("tag", "ocidir://site:v1", "v2", "--key", public)[0] == NO
    assert tags(tmp_path / "site") == before


def test_pull_leaves_a_full_directory_alone_unless_forced(
    ocipack: Run, hello: Path, key: str, public: str, tmp_path: Path
) -> None:
    ship(ocipack, hello, key)
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "mine").write_text("x")
    pull = ("pull", "ocidir://site:v1", "--key", public, "-o", "tree")
    assert ocipack(*pull)[0] == MISUSE
    assert [entry.name for entry in tree.iterdir()] == ["mine"]
    assert ocipack(*pull, "--force")[0] == 0
    assert not (tree / "mine").exists()
    assert (tree / "settings.yaml").exists()


def test_tag_gives_names_only_to_what_is_verified(
    ocipack: Run, hello: Path, key: str, public: str, tmp_path: Path
) -> None:
    made = ocipack("pack", str(hello), "--to", "ocidir://out")[1].strip()
    assert ocipack("tag", made, "v1")[0] == MISUSE
    assert ocipack("tag", made, "v1", "--key", public)[0] == NO
    assert tags(tmp_path / "out") == {}
    assert ocipack("tag", made, "v1", "--key", public, "--allow-unsigned")[0] == MISUSE
    assert ocipack("sign", made, "--key", key)[0] == 0
    code, out, _ = ocipack("tag", made, "v1", "v2", "--key", public)
    digest = made.partition("@")[2]
    assert (code, out) == (0, made.replace("@", ":v2@") + "\n")
    assert {name for name in tags(tmp_path / "out") if name.startswith("v")} == {
        *("v1", "v2"),
        *(f"v1-{digest[7:19]}", f"v2-{digest[7:19]}"),
    }
    assert ocipack("tag", made, "not a tag", "--key", public)[0] == MISUSE


def test_copy_brings_signatures_and_verifies_before_it_tags(
    ocipack: Run, hello: Path, key: str, public: str, tmp_path: Path
) -> None:
    pinned = ship(ocipack, hello, key)
    assert ocipack("copy", pinned, "ocidir://there:v1")[0] == MISUSE
    assert not (tmp_path / "there").exists()
    code, out, _ = ocipack("copy", pinned, "ocidir://there:v1", "--key", public)
    assert code == 0
    assert out.strip().endswith(pinned.partition("@")[2])
    assert ocipack("verify", "ocidir://there:v1", "--key", public)[0] == 0
    before = files(tmp_path / "there")
    assert ocipack("copy", pinned, "ocidir://there:v1", "--key", public)[0] == 0
    assert files(tmp_path / "there") == before
    bare = ("copy", pinned, "ocidir://bare:v1", "--no-signatures", "--key", public)
    assert ocipack(*bare)[0] == NO
    assert "v1" not in tags(tmp_path / "bare")
    assert ocipack("copy", pinned, f"ocidir://other:v1@{DIGEST}", "--key", public)[0] == NO


def test_copy_never_replaces_signatures_made_at_the_destination(
    ocipack: Run, hello: Path, key: str, public: str
) -> None:
    pinned = ship(ocipack, hello, key)
    assert ocipack("keys", "generate", "-o", "local")[0] == 0
    code, there, _ = ocipack("copy", pinned, "ocidir://there", "--no-signatures")
    assert code == 0
    assert ocipack("sign", there.strip(), "--key", "local.key")[0] == 0
    code, _, err = ocipack("copy", pinned, "ocidir://there:v1", "--key", public)
    assert code == NO
    assert "would be lost" in err
    assert ocipack("verify", there.strip(), "--key", "local.pub")[0] == 0


def test_list_and_inspect(ocipack: Run, hello: Path, key: str, tmp_path: Path) -> None:
    pinned = ship(ocipack, hello, key)
    digest = pinned.partition("@")[2]
    code, out, _ = ocipack("list", "ocidir://site")
    assert (code, out.splitlines()) == (0, sorted(tags(tmp_path / "site")))
    code, out, _ = ocipack("list", "ocidir://site", "--digests")
    assert f"v1\t{digest}" in out.splitlines()
    code, out, _ = ocipack("list", "ocidir://site", "--output", "json")
    assert {"name": "v1"} in json.loads(out)["tags"]
    code, out, _ = ocipack("inspect", "ocidir://site:v1")
    assert code == 0
    assert pinned in out
    assert out.count("attached") == 2
    code, out, _ = ocipack("inspect", "ocidir://site:v1", "--raw")
    assert hashlib.sha256(out.strip().encode()).hexdigest() == digest[7:]
    code, out, _ = ocipack("inspect", "ocidir://site:v1", "--output", "json")
    assert json.loads(out)["artifact"]["digest"] == digest
    assert ocipack("inspect", "ocidir://absent:v1")[0] == NOT_FOUND


def test_inspect_shows_an_annotation_on_one_line(ocipack: Run, hello: Path) -> None:
    said = ("--annotation", "org.example=a\nattached    sha256:0", "--allow-dirty")
    code, made, _ = ocipack("pack", str(hello), "--to", "ocidir://site", *said)
    assert code == 0
    assert "\nattached" not in ocipack("inspect", made.strip())[1]


def test_keys_generate_never_overwrites_and_keeps_the_secret_private(
    ocipack: Run, tmp_path: Path
) -> None:
    code, out, _ = ocipack("keys", "generate", "-o", "mine")
    assert (code, out) == (0, "mine.pub\n")
    assert stat.S_IMODE((tmp_path / "mine.key").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "mine.pub").stat().st_mode) == 0o644
    before = (tmp_path / "mine.key").read_bytes()
    code, _, err = ocipack("keys", "generate", "-o", "mine")
    assert code == MISUSE
    assert "--force" in err
    assert (tmp_path / "mine.key").read_bytes() == before
    assert ocipack("keys", "generate", "-o", "mine", "--force")[0] == 0
    assert (tmp_path / "mine.key").read_bytes() != before
    assert ocipack("keys", "public", "mine.key")[1] == (tmp_path / "mine.pub").read_text()
    assert ocipack("keys", "public", "mine.pub")[1] == (tmp_path / "mine.pub").read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
        ["ecparam", "-genkey", "-name", "prime256v1", "-noout"],
    ],
)
def test_keys_import_takes_what_openssl_makes(
    ocipack: Run, tmp_path: Path, arguments: list[str]
) -> None:
    plain = tmp_path / "plain.pem"
    plain.write_bytes(
        subprocess.run(["openssl", *arguments], capture_output=True, check=True).stdout
    )
    code, out, _ = ocipack("keys", "import", "plain.pem", "-o", "mine")
    assert (code, out) == (0, "mine.pub\n")
    said = subprocess.run(
        ["openssl", "pkey", "-in", str(plain), "-pubout"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (tmp_path / "mine.pub").read_text() == said.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
        ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"],
        ["genpkey", "-algorithm", "ED25519"],
    ],
)
def test_keys_that_not_every_verifier_reads_are_not_imported(
    ocipack: Run, tmp_path: Path, arguments: list[str]
) -> None:
    made = subprocess.run(["openssl", *arguments], capture_output=True, check=True).stdout
    (tmp_path / "plain.pem").write_bytes(made)
    code, _, err = ocipack("keys", "import", "plain.pem", "-o", "mine")
    assert code == MISUSE
    assert "P-256" in err
    assert not (tmp_path / "mine.key").exists()


def test_where_a_password_comes_from(
    ocipack: Run, hello: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ocipack("keys", "generate", "-o", "mine")[0] == 0
    monkeypatch.delenv("COSIGN_PASSWORD")
    made = ocipack("pack", str(hello), "--to", "ocidir://out")[1].strip()
    sign = ("sign", made, "--key", "mine.key")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    code, _, err = ocipack(*sign)
    assert code == MISUSE
    assert "no terminal to ask on" in err
    (tmp_path / "right").write_text("correct-horse\n")
    (tmp_path / "wrong").write_text("battery-staple\n")
    code, _, err = ocipack(*sign, "--password-file", "wrong")
    assert code == MISUSE
    assert "password" in err
    assert "battery-staple" not in err
    assert ocipack(*sign, "--password-file", "absent")[0] == MISUSE
    assert ocipack(*sign, "--password-file", "right", "--password-stdin")[0] == MISUSE
    assert ocipack(*sign, "--password-file", "right")[0] == 0
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"correct-horse\n")))
    assert ocipack(*sign, "--password-stdin")[0] == 0
    (tmp_path / "huge").write_bytes(b"x" * 65537)
    assert ocipack(*sign, "--password-file", "huge")[0] == MISUSE
    monkeypatch.setenv("COSIGN_PASSWORD", "")
    assert ocipack(*sign)[0] == MISUSE


def test_a_public_key_given_as_private_and_the_other_way_round(
    ocipack: Run, hello: Path, key: str, public: str
) -> None:
    code, _, err = ocipack("ship", str(hello), "--to", "ocidir://site:v1", "--key", public)
    assert code == MISUSE
    assert "hint: " in err
    ship(ocipack, hello, key)
    code, _, err = ocipack("verify", "ocidir://site:v1", "--key", key)
    assert code == MISUSE
    assert "private key" in err


EXAMPLE = Path(__file__).parents[2] / "keys-example"


def test_example_keys_serve_for_layouts_only(
    ocipack: Run, hello: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COSIGN_PASSWORD", "ocipack-example")
    ship(ocipack, hello, str(EXAMPLE / "cosign.key"))
    assert ocipack("verify", "ocidir://site:v1", "--key", str(EXAMPLE / "cosign.pub"))[0] == 0


def test_git_facts_reach_the_annotations_and_a_dirty_tree_is_refused(
    ocipack: Run, hello: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(hello), *arguments], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("init", "-q", "-b", "main")
    git("config", "user.email", "a@example.com")
    git("config", "user.name", "a")
    git("remote", "add", "origin", "https://user:token@git.example.com/team/hello.git")
    git("add", ".")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-01-02T03:04:05+05:00")
    git("commit", "-q", "-m", "x")
    said = json.loads(ocipack("pack", str(hello), "--output", "json")[1])
    assert said["artifact"]["annotations"] == {
        "org.opencontainers.image.created": "2026-01-01T22:04:05Z",
        "org.opencontainers.image.revision": f"main@sha1:{git('rev-parse', 'HEAD')}",
        "org.opencontainers.image.source": "https://git.example.com/team/hello",
    }
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    monkeypatch.setenv("CI_COMMIT_REF_NAME", "release")
    said = json.loads(ocipack("pack", str(hello), "--output", "json")[1])
    assert (
        said["artifact"]["annotations"]["org.opencontainers.image.created"]
        == "1970-01-01T00:00:00Z"
    )
    assert said["artifact"]["annotations"]["org.opencontainers.image.revision"].startswith(
        "release@"
    )
    (hello / "new.yaml").write_text("")
    code, _, err = ocipack("pack", str(hello))
    assert code == NO
    assert "new.yaml: error[tree-dirty]" in err
    assert ocipack("pack", str(hello), "--ignore", "new.yaml")[0] == 0
    said = json.loads(ocipack("pack", str(hello), "--allow-dirty", "--output", "json")[1])
    assert said["artifact"]["annotations"]["org.opencontainers.image.revision"].startswith(
        "release-dirty@"
    )


@pytest.mark.parametrize(
    ("spoil", "code", "words"),
    [
        (lambda tree: (tree / "link").symlink_to("settings.yaml"), NO, "link"),
        (lambda tree: os.mkfifo(tree / "pipe"), NO, "pipe"),
        (lambda tree: (tree / "a\\b").write_text(""), NO, "a\\\\b"),
        (lambda tree: Path(os.fsdecode(bytes(tree) + b"/\xff")).write_text(""), NO, "xff"),
    ],
)
def test_a_tree_that_cannot_be_packed_is_refused_by_name(
    ocipack: Run, hello: Path, spoil: Callable[[Path], object], code: int, words: str
) -> None:
    spoil(hello)
    got, out, err = ocipack("pack", str(hello))
    assert (got, out) == (code, "")
    assert words in err
    assert "Traceback" not in err


def test_a_registry_place_and_a_layout_place_are_told_apart(ocipack: Run, public: str) -> None:
    assert ocipack("verify", "registry.example/app:v1", "--key", public)[0] == MISUSE
    assert ocipack("verify", "ocidir://", "--key", public)[0] == MISUSE
