"""What is said of a place in an object: that it names something, or that nobody looked at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from ocipack.errors import Misuse
from ocipack.oci.reference import Reference
from ocipack.report import Severity
from ocipack.trust.policy.contents import IMAGE, Part

if TYPE_CHECKING:
    from ocipack.flux.sources import Link

Path: TypeAlias = tuple[str, ...]

SHOWN: Final = 300
"""Characters of a name that are shown."""

_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")


@dataclass(frozen=True, slots=True)
class Named:
    """A part, the path in the object that names it, and what that place is for people.

    `link` is the object that says where a chart comes from.
    """

    part: Part
    path: Path
    place: str
    link: Link | None = None


@dataclass(frozen=True, slots=True)
class Unseen:
    """Something of an object that nobody looked at, and why."""

    reason: str
    severity: Severity = Severity.NOTE


def image(text: str, reason: str = "") -> Part:
    """The image `text`, as whoever runs a container reads it."""
    try:
        reference = Reference.familiar(text)
    except Misuse as e:
        return Part(IMAGE, text[:SHOWN], reason=reason or str(e))
    return Part(IMAGE, text[:SHOWN], reference, pinned=reference.digest is not None)


def in_pod(path: Path) -> bool:
    """Whether the text at `path` is the image of a container, or of a volume."""
    container = path[-3:-2] and path[-3] in _CONTAINERS and path[-1] == "image"
    return bool(container) or (path[-4:-3] == ("volumes",) and path[-2:] == ("image", "reference"))
