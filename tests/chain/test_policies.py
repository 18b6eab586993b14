"""Whole commands under policies: what was signed for one purpose does not serve another."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]

NO, MISUSE, UNKNOWN = 1, 2, 3
VERSION = "org.opencontainers.image.version"


def policy(path: Path, public: str, spec: str, *, name: str = "production") -> str:
    """Write a policy of one authority, the key in `public`; `spec` is added to its spec."""
    path.write_text(
        "apiVersion: ocipack.dev/v1alpha1\nkind: VerificationPolicy\n"
        f"metadata:\n  name: {name}\nspec:\n"
        f'  authorities: [{{keys: [{{file: "{public}"}}]}}]\n{spec}'
    )
    return str(path)


def ship(ocipack: Run, tree: Path, to: str, key: str, *more: str) -> str:
    code, out, err = ocipack("ship", str(tree), "--to", to, "--key", key, *more)
    assert code == 0, err
    return out.strip()


def change(tree: Path, text: str) -> None:
    """Make the tree one that has not been shipped before."""
    file = next(tree.rglob("*.yaml"))
    file.write_text(f"# {text}\n{file.read_text()}")


@pytest.mark.parametrize("form", ["both", "legacy", "bundle"])
def test_what_was_signed_for_dev_is_refused_in_production(
    ocipack: Run, hello: Path, key: str, public: str, tmp_path: Path, form: str
) -> None:
    production = policy(
        tmp_path / "p.yaml", public, "  images: [localhost/prod]\n"
        "  annotations: {environment: production}\n  bind: [tag]\n"
    )  # fmt: skip
    bound = ("--bind", "tag,source", "--source", "https://git.example.com/fleet", "--format", form)
    ship(ocipack, hello, "ocidir://dev:v1", key, *bound, "--environment", "dev")
    shutil.copytree(tmp_path / "dev", tmp_path / "prod")  # byte for byte, signatures and all
    code, out, err = ocipack("verify", "ocidir://prod:v1", "--policy", production)
    assert (code, out) == (NO, "")
    assert "its signed annotation environment says 'dev', not 'production'" in err
    # the same key has signed it, so without the policy it passes
    assert ocipack("verify", "ocidir://prod:v1", "--key", public)[0] == 0
    # nothing that acts on a verdict takes it either
    assert ocipack("pull", "ocidir://prod:v1", "--policy", production, "-o", "out")[0] == NO
    assert not (tmp_path / "out").exists()
    assert ocipack("tag", "ocidir://prod:v1", "v1", "--policy", production)[0] == NO
    # signed for production it passes, under this tag alone
    shipped = ship(
        ocipack, hello, "ocidir://prod:v1", key, *bound, "--environment", "production",
        "--policy", production,
    )  # fmt: skip
    assert ocipack("verify", "ocidir://prod:v1", "--policy", production)[:2] == (0, shipped + "\n")
    assert ocipack("tag", "ocidir://prod:v1", "v2", "--policy", production)[0] == NO
    assert ocipack("pull", "ocidir://prod:v1", "--policy", production, "-o", "out")[0] == 0


def test_copying_from_dev_does_not_give_a_tag_in_production(
    ocipack: Run, hello: Path, key: str, public: str, tmp_path: Path
) -> None:
    production = policy(
        tmp_path / "p.yaml",
        public,
        "  images: [localhost/prod]\n  annotations: {environment: production}\n",
    )
    ship(ocipack, hello, "ocidir://dev:v1", key, "--environment", "dev")
    code, _, err = ocipack("copy", "ocidir://dev:v1", "ocidir://prod:v1", "--policy", production)
    assert code == NO
    assert "environment says 'dev'" in err
    assert "v1" not in ocipack("list", "ocidir://prod")[1].split()


@pytest.mark.parametrize("floor", ["version: 2.0.0", "created: 2026-06-01T00:00:00Z"])
def test_an_older_signed_version_put_back_under_the_tag_is_refused(
    ocipack: Run,
    hello: Path,
    key: str,
    public: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    floor: str,
) -> None:
    current = policy(
        tmp_path / "p.yaml", public, f"  images: ['**']\n  notOlderThan: {{{floor}}}\n"
    )
    bound = ("--bind", "version,created")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")  # 2026-01-01
    old = ship(ocipack, hello, "ocidir://site:v", key, *bound, "--annotation", f"{VERSION}=1.9.9")
    change(hello, "new")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1780272000")  # 2026-06-01
    new = ship(
        ocipack, hello, "ocidir://site:v", key, *bound, "--annotation", f"{VERSION}=2.0.0",
        "--policy", current,
    )  # fmt: skip
    assert ocipack("verify", "ocidir://site:v", "--policy", current)[:2] == (0, new + "\n")
    index = tmp_path / "site" / "index.json"
    document = json.loads(index.read_text())
    for entry in document["manifests"]:  # whoever can write to the place moves the tag back
        if entry.get("annotations", {}).get("org.opencontainers.image.ref.name") == "v":
            entry["digest"] = old.partition("@")[2]
            size = (tmp_path / "site/blobs/sha256" / entry["digest"][7:]).stat().st_size
            entry["size"] = size
    index.write_text(json.dumps(document))
    assert ocipack("verify", "ocidir://site:v", "--key", public)[:2] == (0, old + "\n")
    code, out, err = ocipack("verify", "ocidir://site:v", "--policy", current)
    assert (code, out) == (NO, "")
    assert "is older than" in err
    # signed anew without saying its age it is old, too
    assert ocipack("sign", "ocidir://site:v", "--key", key)[0] == 0
    assert ocipack("verify", "ocidir://site:v", "--policy", current)[0] == NO


def test_exempted_is_not_proven(
    ocipack: Run, hello: Path, key: str, public: str, tmp_path: Path
) -> None:
    ship(ocipack, hello, "ocidir://site:v1", key)
    lax = policy(
        tmp_path / "lax.yaml", public,
        "  images: ['**']\n  mode: warn\n  annotations: {environment: production}\n",
    )  # fmt: skip
    code, out, err = ocipack("verify", "ocidir://site:v1", "--policy", lax, "--output", "json")
    assert code == 0
    [found] = json.loads(out)["artifacts"]
    assert found["verdict"] == "exempted"
    assert found["waivers"][0]["kind"] == "warned"
    assert "policy-waived" in err
    for command in (
        ("pull", "ocidir://site:v1", "-o", "out"),
        ("tag", "ocidir://site:v1", "v2"),
        ("copy", "ocidir://site:v1", "ocidir://other:v1"),
        ("ship", str(hello), "--to", "ocidir://third:v1", "--key", key),
    ):
        code, _, err = ocipack(*command, "--policy", lax)
        assert code == NO, command
        assert "it is exempted, not proven" in err
        assert "--allow-exempted" in err
        code, _, err = ocipack(*command, "--policy", lax, "--allow-exempted")
        assert code == 0, err


def test_several_policies_must_all_be_met(
    ocipack: Run, hello: Path, key: str, public: str, tmp_path: Path
) -> None:
    ship(ocipack, hello, "ocidir://site:v1", key, "--environment", "production")
    wide = policy(tmp_path / "wide.yaml", public, "  images: ['**']\n", name="wide")
    narrow = policy(
        tmp_path / "narrow.yaml", public,
        "  images: ['localhost/*']\n  annotations: {environment: dev}\n", name="narrow",
    )  # fmt: skip
    assert ocipack("verify", "ocidir://site:v1", "--policy", wide)[0] == 0
    code, _, err = ocipack("verify", "ocidir://site:v1", "--policy", wide, "--policy", narrow)
    assert code == NO
    assert "policy narrow:" in err


def test_unsigned_data_binds_nothing(
    ocipack: Run, hello: Path, key: str, public: str, tmp_path: Path
) -> None:
    """An annotation of the manifest that is called like a signed one says nothing."""
    asked = policy(
        tmp_path / "p.yaml",
        public,
        "  images: ['**']\n  annotations: {environment: production}\n",
    )
    ship(ocipack, hello, "ocidir://site:v1", key, "--annotation", "environment=production")
    code, _, err = ocipack("verify", "ocidir://site:v1", "--policy", asked)
    assert code == NO
    assert "says nothing" in err
    assert ocipack("sign", "ocidir://site:v1", "--key", key, "--environment", "production")[0] == 0
    assert ocipack("verify", "ocidir://site:v1", "--policy", asked)[0] == 0


def test_shipping_for_another_environment_signs_again(
    ocipack: Run, hello: Path, key: str, public: str, tmp_path: Path
) -> None:
    first = ship(ocipack, hello, "ocidir://site:v1", key, "--environment", "dev")
    code, _, err = ocipack(
        "ship", str(hello), "--to", "ocidir://site:v1", "--key", key, "--environment", "production"
    )
    assert code == 0
    assert "unchanged" not in err
    asked = policy(
        tmp_path / "p.yaml",
        public,
        "  images: ['**']\n  annotations: {environment: production}\n",
    )
    assert ocipack("verify", "ocidir://site:v1", "--policy", asked)[:2] == (0, first + "\n")
    again = ocipack(
        "ship", str(hello), "--to", "ocidir://site:v1", "--key", key, "--environment", "production"
    )
    assert "unchanged" in again[2]


MISUSES: list[tuple[tuple[str, ...], str]] = [
    (("verify", "ocidir://s:v1"), "neither --key nor --policy"),
    (("pull", "ocidir://s:v1", "-o", "x"), "neither --key nor --policy"),
    (("tag", "ocidir://s:v1", "v2"), "neither --key nor --policy"),
    (("copy", "ocidir://s:v1", "ocidir://t:v2"), "neither --key nor --policy"),
    (
        ("verify", "ocidir://s:v1", "--key", "{public}", "--policy", "{policy}"),
        "exclude each other",
    ),
    (("tag", "ocidir://s:v1", "v", "--policy", "{policy}", "--allow-unsigned"), "exclude"),
    (("verify", "ocidir://s:v1", "--policy", "{policy}", "--threshold", "2"), "belongs to --key"),
    (("verify", "ocidir://s:v1", "--policy", "gone.yaml"), "gone.yaml: cannot be read"),
    (("verify", "ocidir://s:v1", "--policy", "{policy}", "--policy", "{policy}"), "two policies"),
    (("sign", "ocidir://s:v1", "--key", "{key}", "--bind", "environment"), "needs a name"),
    (("sign", "ocidir://s:v1", "--key", "{key}", "--bind", "colour"), "nothing can be bound"),
    (("sign", "ocidir://s:v1", "--key", "{key}", "--bind", "version"), "there is no version"),
    (
        ("sign", "ocidir://s:v1", "--key", "{key}", "--bind", "tag", "--annotation", "tag=v1"),
        "both bound and given",
    ),
]


@pytest.mark.parametrize(("line", "words"), MISUSES)
def test_misuse(
    ocipack: Run,
    hello: Path,
    key: str,
    public: str,
    tmp_path: Path,
    line: tuple[str, ...],
    words: str,
) -> None:
    ship(ocipack, hello, "ocidir://s:v1", key)
    path = policy(tmp_path / "p.yaml", public, "  images: ['**']\n")
    known = {"public": public, "policy": path, "key": key}
    code, _, err = ocipack(*(part.format(**known) for part in line))
    assert code == MISUSE, err
    assert words in err


def test_a_digest_alone_has_no_tag_to_sign_for(
    ocipack: Run, hello: Path, key: str, public: str, tmp_path: Path
) -> None:
    pinned = ship(ocipack, hello, "ocidir://site:v1", key, "--bind", "tag,repository")
    digest = pinned.partition("@")[2]
    asked = policy(tmp_path / "p.yaml", public, "  images: ['**']\n  bind: [tag, repository]\n")
    assert ocipack("verify", f"ocidir://site:v1@{digest}", "--policy", asked)[0] == 0
    code, _, err = ocipack("verify", f"ocidir://site@{digest}", "--policy", asked)
    assert code == NO
    assert "no tag was asked for" in err
    code, _, err = ocipack("sign", f"ocidir://site@{digest}", "--key", key, "--bind", "tag")
    assert code == MISUSE
    shutil.copytree(tmp_path / "site", tmp_path / "elsewhere")
    code, _, err = ocipack("verify", "ocidir://elsewhere:v1", "--policy", asked)
    assert code == NO
    assert "'localhost/elsewhere' was asked for" in err


def test_policy_lint_explain_and_test(ocipack: Run, public: str, tmp_path: Path) -> None:
    path = policy(
        tmp_path / "p.yaml", public,
        "  images: [registry.example.com/prod/**]\n  annotations: {environment: production}\n",
    )  # fmt: skip
    code, out, err = ocipack("policy", "lint", path)
    assert (code, out, err) == (0, "production\n", "")
    code, out, _ = ocipack(
        "policy", "explain", "registry.example.com/prod/app:v1", "--policy", path
    )
    assert code == 0
    assert "policy production covers it" in out
    assert "each signature says environment 'production'" in out
    code, out, err = ocipack("policy", "explain", "nginx", "--policy", path)
    assert code == NO
    assert "policy production does not cover it" in out
    assert "no policy covers docker.io/library/nginx" in err
    cases = tmp_path / "cases.yaml"
    cases.write_text(
        "apiVersion: ocipack.dev/v1alpha1\nkind: PolicyTest\ncases:\n"
        "  - image: registry.example.com/prod/app:v1\n    expect: verified\n"
        f'    signatures: [{{key: "{public}", annotations: {{environment: production}}}}]\n'
        "  - image: registry.example.com/prod/app:v1\n    expect: rejected\n"
        f'    signatures: [{{key: "{public}", annotations: {{environment: dev}}}}]\n'
    )
    code, out, _ = ocipack("policy", "test", path, str(cases))
    assert (code, out.count("ok  ")) == (0, 2)
    cases.write_text(cases.read_text().replace("rejected", "verified"))
    code, out, err = ocipack("policy", "test", path, str(cases))
    assert code == NO
    assert out.splitlines()[1].startswith("FAILED")
    assert "cases.yaml:7:5: error[policy-case]" in err
    assert "environment says 'dev', not 'production'" in err


def test_policy_lint_warns_of_what_is_weak(ocipack: Run, public: str, tmp_path: Path) -> None:
    path = policy(
        tmp_path / "p.yaml", public,
        "  images: ['**']\n  mode: warn\n  exemptions:\n"
        "    - {images: ['**'], owner: team, reason: later, until: 2001-01-01}\n",
    )  # fmt: skip
    code, _, err = ocipack("policy", "lint", path)
    assert code == 0
    assert "warning[policy-lax] it only warns" in err
    assert "warning[policy-expired] the exemption by team ended on 2001-01-01" in err


def test_a_cluster_image_policy_is_a_policy(
    ocipack: Run, hello: Path, key: str, public: str, tmp_path: Path
) -> None:
    pem = json.dumps(Path(public).read_text())
    path = tmp_path / "cip.yaml"
    path.write_text(
        "apiVersion: policy.sigstore.dev/v1beta1\nkind: ClusterImagePolicy\n"
        "metadata: {name: ours}\nspec:\n  images: [{glob: 'localhost/site*'}]\n"
        f"  authorities: [{{key: {{data: {pem}}}}}]\n"
    )
    assert ocipack("policy", "lint", str(path))[:2] == (0, "ours\n")
    shipped = ship(ocipack, hello, "ocidir://site:v1", key, "--policy", str(path))
    found = ocipack("verify", "ocidir://site:v1", "--policy", str(path))
    assert found[:2] == (0, shipped + "\n")
    # it looks for the older form alone, and covers no other name
    change(hello, "new")
    code, _, err = ocipack(
        "ship", str(hello), "--to", "ocidir://site:v2", "--key", key, "--policy", str(path),
        "--format", "bundle",
    )  # fmt: skip
    assert code == NO
    assert "takes no bundle form" in err
    shutil.copytree(tmp_path / "site", tmp_path / "other")
    assert ocipack("verify", "ocidir://other:v1", "--policy", str(path))[0] == NO
    path.write_text(path.read_text() + "  match: [{resource: pods}]\n")
    code, _, err = ocipack("verify", "ocidir://site:v1", "--policy", str(path))
    assert code == MISUSE
    assert f"{path}:7:3: match of a ClusterImagePolicy is not supported" in err
