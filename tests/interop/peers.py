"""The real tools that the interop tests and the benchmarks run: where they are, how they are run.

`peers.sh` builds them; what it did not build is looked for on PATH.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PASSWORD = "correct-horse"  # of keys that live as long as a test run

_CACHE = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
FOLDER = Path(os.environ.get("OCIPACK_PEERS") or Path(_CACHE) / "ocipack-peers")

NO_LOG = ("--use-signing-config=false", "--tlog-upload=false", "-y")
NO_LOG_2 = ("--tlog-upload=false", "-y")
"""What keeps cosign 3 and cosign 2 from public services while they sign with a key."""

IGNORE_LOG = "--insecure-ignore-tlog"
ROOT = '{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}'
"""A trusted root that trusts nobody: cosign 2.6 wants one as soon as there is a bundle."""


class Missing(Exception):
    """A tool is not on this machine."""


def find(name: str) -> str:
    """Find the path of a tool. Missing if it is neither built nor installed."""
    built = FOLDER / name
    path = str(built) if os.access(built, os.X_OK) else shutil.which(name)
    if path is None:
        raise Missing(
            f"{name} is neither in {FOLDER} nor on PATH; tests/interop/peers.sh builds it"
        )
    return path


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended."""

    command: tuple[str, ...]
    code: int
    out: str
    err: str

    def __str__(self) -> str:
        return f"exit {self.code}: {' '.join(self.command)}\n{self.out}{self.err}"

    def expect(self, code: int = 0) -> str:
        """Return standard output, if the exit code is what it should be."""
        assert self.code == code, str(self)
        return self.out.strip()


def environment(home: Path, **more: str) -> dict[str, str]:
    """Make an environment that has nothing of the machine's owner in it: no logins, no settings."""
    kept = {k: v for k, v in os.environ.items() if k.startswith(("COVERAGE_", "PYTHON"))}
    return {
        **kept,
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "COSIGN_PASSWORD": PASSWORD,
        **more,
    }


def run(command: tuple[str, ...], env: Mapping[str, str], cwd: Path, timeout: float = 120) -> Ended:
    """Run a process to its end."""
    done = subprocess.run(
        command,
        env=dict(env),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    return Ended(command, done.returncode, done.stdout.decode(), done.stderr.decode())


OCIPACK = (sys.executable, "-m", "ocipack")


@dataclass(frozen=True, slots=True)
class Desk:
    """A working directory with a home of its own, where we and the peers run."""

    folder: Path

    @property
    def root(self) -> str:
        """The empty trusted root, as a file."""
        path = self.folder / "trusted_root.json"
        path.write_text(ROOT)
        return str(path)

    def env(self, **more: str) -> dict[str, str]:
        """Make the environment of what runs here."""
        scratch = self.folder / "tmp"  # what a killed run leaves behind goes with the test
        scratch.mkdir(exist_ok=True)
        return environment(self.folder, TMPDIR=str(scratch), **more)

    def tool(self, name: str, *args: str) -> Ended:
        """Run a peer."""
        return run((find(name), *args), self.env(), self.folder)

    def ocipack(self, *args: str, **more: str) -> Ended:
        """Run ocipack, the one that this interpreter has."""
        return run((*OCIPACK, *args), self.env(**more), self.folder)

    def cosign(self, version: int, verb: str, *args: str) -> Ended:
        """Run `cosign sign` or `cosign verify`, of version 2 or 3, without public services."""
        offline = {
            "sign": NO_LOG if version == 3 else NO_LOG_2,
            "verify": (IGNORE_LOG,),
        }[verb]
        return self.tool(f"cosign{version}", verb, *offline, *args)
