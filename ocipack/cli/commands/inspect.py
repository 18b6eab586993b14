"""`ocipack inspect`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.console import line, size
from ocipack.cli.outcome import Outcome
from ocipack.cli.places import opened, place
from ocipack.errors import NotFound
from ocipack.oci import store as stores
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import DIGEST_TAGS
from ocipack.oci.manifest import Manifest
from ocipack.oci.store import Source


@click.argument("location", metavar="PLACE")
@click.option("--raw", is_flag=True, help="Print the manifest exactly as it is stored.")
def inspect(app: App, *, location: str, raw: bool) -> Outcome:
    """Show an artifact's manifest, and everything attached to it.

    Nothing is verified here: what is attached is what somebody put there.
    """
    where = place(location)
    with opened(app, where) as source:
        target = source.resolve(where.reference.name)
        found = stores.manifest(source, target)
        if raw:
            return Outcome(found.raw.decode(), {"manifest": found.document})
        attached = [*_tags(source, target), *_referrers(source, target)]
    return Outcome(
        "\n".join(_lines(str(where.at(target.digest)), found, attached)),
        {
            "artifact": {
                "place": str(where.at(target.digest)),
                "digest": str(target.digest),
                "mediaType": target.media_type,
                "size": target.size,
                "artifactType": found.artifact_type,
                "annotations": dict(found.annotations),
            },
            "manifest": found.document,
            "attached": attached,
        },
    )


def _tags(source: Source, target: Descriptor) -> Iterator[dict[str, Any]]:
    for suffix in DIGEST_TAGS:
        name = target.digest.tag + suffix
        try:
            root = source.resolve(name)
        except NotFound:
            continue
        layers = stores.manifest(source, root).layers
        yield {"tag": name, "digest": str(root.digest), "layers": len(layers)}


def _referrers(source: Source, target: Descriptor) -> Iterator[dict[str, Any]]:
    for found in source.referrers(target):
        yield {
            "digest": str(found.digest),
            "artifactType": found.artifact_type,
            "annotations": dict(found.annotations),
        }


def _lines(pinned: str, found: Manifest, attached: list[dict[str, Any]]) -> Iterator[str]:
    yield f"artifact    {pinned}"
    yield f"mediaType   {found.media_type}"
    if found.artifact_type:
        yield f"type        {line(found.artifact_type)}"
    for child in found.children:
        kind = "manifest" if child.is_manifest else "blob"
        yield f"{kind:<11} {child.digest}  {size(child.size)}  {line(child.media_type)}"
    for key, value in found.annotations.items():
        yield f"annotation  {line(key)}={line(value)}"
    for one in attached:
        what = f"{one['layers']} layers under {one['tag']}" if "tag" in one else one["artifactType"]
        yield f"attached    {one['digest']}  {line(what)}"


command = outcome_command(inspect)
