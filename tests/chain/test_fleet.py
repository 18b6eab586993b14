"""examples/fleet as its five artifacts: the same from every clone, and only what changed moves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from chain.conftest import ROOT, Run
from chain.test_commands import files, tags as names

REPOSITORIES = ("infra", "tenants", "clusters/dev", "clusters/stage", "clusters/prod")
EXAMPLE = ("--key", str(ROOT / "keys-example" / "cosign.key"))


def git(folder: Path, *arguments: str) -> str:
    """Run git without anybody's settings."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_NAME": "fleet" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "fleet@example.com" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_DATE": "2026-11-30T12:00:00+02:00" for who in ("AUTHOR", "COMMITTER")},
    }
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """The fleet as a repository of its own, committed."""
    folder = tmp_path / "fleet"
    shutil.copytree(ROOT / "examples" / "fleet", folder)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "The fleet")
    return folder


def tags(layout: Path) -> dict[str, str]:
    """What the tags of a layout name, but for those of signatures."""
    return {name: what for name, what in names(layout).items() if not name.startswith("sha256-")}


def ship(ocipack: Run, fleet: Path, to: str, *more: str) -> dict[str, str]:
    """Ship the fleet; the digests by the names of the repositories."""
    code, out, err = ocipack("ship", str(fleet), "--to", to, *more)
    assert code == 0, err
    return digests(out, to)


def digests(out: str, to: str) -> dict[str, str]:
    """The digests in a list of pinned places below `to`, by the names of the repositories."""
    found = {}
    for line in out.splitlines():
        place, _, digest = line.rpartition("@")
        found[place.rpartition(":")[0].partition(to.removeprefix("ocidir://"))[2].strip("/")] = (
            digest
        )
    return found


def test_every_clone_makes_the_same_five_artifacts(
    ocipack: Run, fleet: Path, key: str, tmp_path: Path
) -> None:
    here = ship(ocipack, fleet, "ocidir://here", "--key", key)
    assert tuple(here) == REPOSITORIES
    assert len({*here.values()}) == len(REPOSITORIES)

    old = os.umask(0o077)
    try:
        git(tmp_path, "clone", "--quiet", str(fleet), str(tmp_path / "second"))
    finally:
        os.umask(old)
    for number, path in enumerate(sorted((tmp_path / "second").rglob("*"))):
        if ".git" not in path.parts:
            os.utime(path, (number * 86400, number * 86400))
    environment = {
        **os.environ,
        "LC_ALL": "tr_TR.UTF-8",
        "TZ": "Pacific/Kiritimati",
        "PYTHONHASHSEED": "7",
    }
    command = ["-m", "ocipack", "ship", "second", "--to", "ocidir://there", "--key", key]
    done = subprocess.run(
        [sys.executable, *command],
        cwd=tmp_path,
        env=environment,
        umask=0o077,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert digests(done.stdout, "ocidir://there") == here
    for name, digest in here.items():
        expected = {"latest": digest, f"latest-{digest[7:19]}": digest}
        assert tags(tmp_path / "here" / name) == tags(tmp_path / "there" / name) == expected


def test_a_changed_tenant_moves_its_own_tags_alone(
    ocipack: Run, fleet: Path, key: str, tmp_path: Path
) -> None:
    before = ship(ocipack, fleet, "ocidir://site", "--key", key)
    left = {name: files(tmp_path / "site" / name) for name in REPOSITORIES}

    quota = fleet / "tenants/juniper/quota.yaml"
    quota.write_text(quota.read_text().replace("12Gi", "20Gi"))
    git(fleet, "commit", "--quiet", "--all", "--message", "More room for juniper")
    after = ship(ocipack, fleet, "ocidir://site", "--key", key)

    assert {name for name in REPOSITORIES if before[name] != after[name]} == {"tenants"}
    for name in {*REPOSITORIES} - {"tenants"}:
        assert files(tmp_path / "site" / name) == left[name]
    old, new = before["tenants"], after["tenants"]
    assert tags(tmp_path / "site/tenants") == {
        "latest": new,
        f"latest-{old[7:19]}": old,
        f"latest-{new[7:19]}": new,
    }


def test_an_environment_gets_what_belongs_to_it_signed_for_it(
    ocipack: Run, fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COSIGN_PASSWORD", "ocipack-example")
    made = ship(ocipack, fleet, "ocidir://site", "--environment", "dev", *EXAMPLE)
    assert tuple(made) == ("infra", "tenants", "clusters/dev")
    for name, digest in made.items():
        assert tags(tmp_path / "site" / name)["dev"] == digest
        place = f"ocidir://site/{name}:dev"
        for environment, code in (("dev", 0), ("stage", 1), ("prod", 1)):
            policy = str(fleet / f"policies/{environment}.yaml")
            assert ocipack("verify", place, "--policy", policy)[0] == code
    assert not (tmp_path / "site/clusters/prod").exists()


def test_nothing_is_wrong_with_it(ocipack: Run, fleet: Path) -> None:
    code, _, err = ocipack("validate", str(fleet))
    assert code == 0, err
    assert "0 errors, 0 warnings" in err


def test_without_the_excuse_the_sealed_secret_is_not_delivered(
    ocipack: Run, fleet: Path, key: str, tmp_path: Path
) -> None:
    project = fleet / "ocipack.yaml"
    project.write_text(project.read_text().partition("validate:")[0])
    options = ("--to", "ocidir://site", "--key", key, "--allow-dirty", "--artifact", "infra")
    code, _, err = ocipack("ship", str(fleet), *options)
    assert code == 1
    assert "infra/security/base/secrets/umami-database.sops.yaml" in err
    assert "secret-ciphertext" in err
    assert not (tmp_path / "site").exists()
