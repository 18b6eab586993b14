"""The table of commands; loads click and nothing else, all that --version and --help need."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import click

from ocipack import __version__

COMMANDS = {
    "ship": "Pack, check, push, sign and verify a tree, then move its tags.",
    "pack": "Pack a tree into a deterministic artifact.",
    "render": "Build the manifests of a packed tree and check them.",
    "validate": "Check manifests as the API server and Flux will read them.",
    "copy": "Copy an artifact or image with all that is attached to it.",
    "mirror": "Bring images, artifacts, charts and whole locks to another registry.",
    "vendor": "Bring manifests, CRDs and charts from elsewhere into the tree, and lock them.",
    "images": "List the images that a chart runs, and how sure that is.",
    "airgap": "Carry images, charts and artifacts across an air gap, with their signatures.",
    "sign": "Sign what is in a repository or layout, so that cosign agrees.",
    "verify": "Prove that an artifact was signed by keys you trust, or say why not.",
    "pull": "Verify an artifact, then unpack it into a directory.",
    "tag": "Point tags at an artifact that is there already.",
    "list": "List the tags of a repository or layout.",
    "inspect": "Show an artifact's manifest, and everything attached to it.",
    "keys": "Make, import and read signing keys.",
    "policy": "Check, explain and test verification policies.",
    "init": "Write a first project file, ocipack.yaml, from what is found in a directory.",
    "pin": "Give every image a digest, in place.",
    "lock": "Show what references resolved to, and whether they still do.",
    "login": "Log in at a registry, and keep the credentials as docker does.",
    "logout": "Forget the credentials of a registry.",
    "registry": "Find out what a registry can do, and what it lets us do.",
    "rules": "List the rules that findings name, and explain one.",
}
"""Every command and its first line of help: what --help shows without loading any of them."""


class Commands(click.Group):
    """A group whose commands are loaded when they run, never for --help or --version."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Every command, in the order of the table."""
        return list(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        cmd_name: str,
    ) -> click.Command | None:
        """Load one command."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"ocipack.cli.commands.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        """Show the table without loading anything."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done or yes, 1 no, 2 malformed request, 3 could not decide, 70 a bug. "
    "Pages that are called docs/… are in the source, beside its README.md.",
)
@click.version_option(__version__, message="ocipack %(version)s")
def group() -> None:
    """Turn a GitOps tree into a signed, digest-pinned OCI artifact; deliver nothing else."""


def run(arguments: Sequence[str]) -> int:
    """Run one command line and turn how it ended into an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        code = group.main(list(arguments), "ocipack", standalone_mode=False)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - Python's own exit code is 1, and 1 means "no"
        from ocipack.cli.exits import end  # noqa: PLC0415 - start-up

        return end(error)
    return code if isinstance(code, int) else 0
