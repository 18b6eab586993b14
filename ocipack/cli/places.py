"""From a place on the command line to a store that is open."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import click

from ocipack.errors import Misuse
from ocipack.oci.location import Location

if TYPE_CHECKING:
    from ocipack.cli.command import App
    from ocipack.stores.charts import ChartStore
    from ocipack.stores.layout import LayoutStore
    from ocipack.stores.registry.store import RegistryStore

_F = TypeVar("_F", bound=Callable[..., Any])


def place(text: str) -> Location:
    """Read a place; `-` reads it from standard input, as another command printed it.

    Misuse if it is no place, or if standard input is a terminal or holds more than one line.
    """
    if text != "-":
        return Location.parse(text, cwd=os.getcwd())  # noqa: PTH109 - text is wanted
    if sys.stdin.isatty():
        raise Misuse("`-` reads a place from standard input, which is a terminal")
    lines = sys.stdin.read(4096).split()
    if len(lines) != 1:
        raise Misuse(
            f"standard input holds {len(lines)} places, and one is needed",
            hint="the command before this one printed none, or several",
        )
    return Location.parse(lines[0], cwd=os.getcwd())  # noqa: PTH109 - text is wanted


@overload
def opened(
    app: App, location: Location, *, write: Literal[False] = False, prefetch: bool = True
) -> AbstractContextManager[LayoutStore | RegistryStore | ChartStore]: ...


@overload
def opened(
    app: App, location: Location, *, write: Literal[True], prefetch: bool = True
) -> AbstractContextManager[LayoutStore | RegistryStore]: ...


@contextmanager
def opened(
    app: App, location: Location, *, write: bool = False, prefetch: bool = True
) -> Iterator[Any]:
    """Open the store at `location`, to `write` too if said so.

    Without `prefetch` a registry is asked what names are, and no manifest is read for it.
    What was written to a layout is finished at the end, or dropped if the block fails. Misuse to
    write to a classic Helm repository.
    """
    if location.is_chart:
        if write:
            raise Misuse(
                f"{location}: a classic Helm repository is only read here",
                hint="write to a registry: oci://registry/repository",
            )
        yield app.registries.chart(location)
    elif location.is_layout:
        from ocipack.stores.layout import LayoutStore  # noqa: PLC0415 - start-up

        with LayoutStore(location.path) as store:
            yield store
    else:
        yield app.registries.store(location.reference, write=write, prefetch=prefetch)


example_option = click.option(
    "--allow-example-key",
    is_flag=True,
    help="Accept keys that ship with ocipack, whose passwords everybody knows.",
)


def map_options(function: _F) -> _F:
    """Add `--map-out` and `--write`, which say where a map of the result goes."""
    for option in reversed(_MAPS):
        function = option(function)
    return function


_MAPS = (
    click.option(
        "--map-out", default="", metavar="FILE", help="Write where everything is, for `pin --map`."
    ),
    click.option(
        "--write",
        "writes",
        multiple=True,
        metavar="FORM=PATH",
        help="Write that for those who pull: hosts-toml=DIR, registries-conf=FILE, idms=FILE.",
    ),
)
