"""Every rule that a finding can name, in one table.

Ids are stable: they are written in ignore lists and read by machines. Each room of the table holds
the rules of one part of the program; a test holds the table to the ids in the source, both ways.
"""

from __future__ import annotations

from ocipack.rules.charts import CHARTS
from ocipack.rules.contents import CONTENTS
from ocipack.rules.ignores import IGNORES
from ocipack.rules.kustomizations import KUSTOMIZATIONS
from ocipack.rules.mirrors import MIRRORS
from ocipack.rules.objects import OBJECTS
from ocipack.rules.pins import PINS
from ocipack.rules.rule import Rule
from ocipack.rules.signatures import SIGNATURES
from ocipack.rules.trees import TREES
from ocipack.rules.vendored import VENDORED

ROOMS: dict[str, dict[str, Rule]] = {
    "Objects": OBJECTS,
    "Ignores": IGNORES,
    "Kustomizations": KUSTOMIZATIONS,
    "Pins": PINS,
    "Mirrors": MIRRORS,
    "Vendored content": VENDORED,
    "Charts": CHARTS,
    "Trees and keys": TREES,
    "Signatures": SIGNATURES,
    "Contents": CONTENTS,
}
"""The rooms of the table under the names that people read."""

RULES: dict[str, Rule] = {id_: rule for room in ROOMS.values() for id_, rule in room.items()}
"""Every rule by its id."""
