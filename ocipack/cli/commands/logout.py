"""`ocipack logout`."""

from __future__ import annotations

import click

from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.outcome import Outcome
from ocipack.stores.http.host import place


@click.argument("registry", metavar="HOST[:PORT]")
def logout(app: App, *, registry: str) -> Outcome:
    """Forget the credentials of a registry.

    Wherever `ocipack login` would keep them; no registry is contacted.
    """
    name = place(registry)
    found = app.registries.keeper().forget(name)
    where = ", ".join(found)
    app.console.note(f"forgot {name} in {where}" if found else f"nothing was kept for {name}")
    return Outcome("", {"registry": name, "forgotten": found})


command = outcome_command(logout)
