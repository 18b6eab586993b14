"""`ocipack registry check`."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import click

from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.console import line
from ocipack.cli.outcome import Outcome
from ocipack.errors import Misuse, StoreError
from ocipack.oci.reference import Reference
from ocipack.stores.http.host import place
from ocipack.stores.registry.client import Client
from ocipack.stores.registry.probe import Found, Outcome as Answer, reading

UNKNOWN = 3
"""The exit code when what nothing works without does not work."""


@click.group("registry")
def command() -> None:
    """Find out what a registry can do, and what it lets us do."""


@click.argument("registry", metavar="HOST[/REPOSITORY]")
@click.option(
    "--write",
    is_flag=True,
    help="Try uploads too, in REPOSITORY/ocipack-check; what is written is deleted again.",
)
def check(app: App, *, registry: str, write: bool) -> Outcome:
    """Find out what works at a registry: connection, API, login, and what it supports.

    Nothing is changed there without --write, and no tag is ever written. Prints a table: what was
    looked at, yes, no or unknown, and why. Exit code 3 if what everything needs does not work.
    """
    host, slash, repository = registry.removeprefix("oci://").partition("/")
    name = place(host)
    if slash:
        asked = Reference.parse(f"{name}/{repository}")
        if asked.repository != repository:
            raise Misuse(f"{registry}: name a repository, without tag and digest")
    elif write:
        raise Misuse(
            "--write needs a repository to write below",
            hint=f"give {name}/REPOSITORY; probes go to REPOSITORY/ocipack-check",
        )
    found = list(_found(app.registries.client(name), repository, write=write))
    for one in found:
        if one.hint:
            app.console.note(f"{one.name}: {one.hint}")
    broken = [one for one in found if one.needed and one.outcome is not Answer.YES]
    width = max(len(one.name) for one in found)
    return Outcome(
        "\n".join(f"{one.name:<{width}}  {one.outcome:<7}  {line(one.detail)}" for one in found),
        {
            "registry": name,
            **({"repository": repository} if repository else {}),
            "checks": [_member(one) for one in found],
        },
        code=UNKNOWN if broken else 0,
        failures=[(one.name, StoreError(one.detail, hint=one.hint)) for one in broken],
    )


def _found(client: Client, repository: str, *, write: bool) -> Iterator[Found]:
    seen: dict[str, Answer] = {}
    for one in reading(client, repository):
        seen[one.name] = one.outcome
        yield one
    if write and seen.get("auth") is Answer.YES:
        from ocipack.stores.registry.probe_writing import writing  # noqa: PLC0415 - start-up

        api = seen.get("referrers") is not Answer.NO
        yield from writing(client, repository, secrets.token_bytes, api=api)


def _member(one: Found) -> dict[str, Any]:
    said = {"name": one.name, "outcome": str(one.outcome), "detail": one.detail}
    return {**said, "needed": one.needed, **({"hint": one.hint} if one.hint else {})}


command.add_command(outcome_command(check))
