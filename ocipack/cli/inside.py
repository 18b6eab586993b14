"""What is named inside of what `airgap save` saves, to be saved as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ocipack.airgap.contents import Wanted
from ocipack.cli.command import App
from ocipack.errors import Rejected
from ocipack.flux import artifact as flux
from ocipack.helm.chart import CONTENT as CHART
from ocipack.oci.location import REGISTRY, Location
from ocipack.oci.manifest import Manifest
from ocipack.oci.reference import Reference
from ocipack.report import Report, Severity
from ocipack.trust.policy.contents import IMAGE, Part
from ocipack.trust.policy.names import Glob

NAMES = 5_000
"""Names in the contents of everything that is saved."""

SHOWN = 3
"""Names that a warning about many shows."""


@dataclass(frozen=True, slots=True)
class Inside:
    """What artifacts name, but for what `without` covers; what cannot be saved is said."""

    app: App
    without: tuple[Glob, ...] = ()

    def added(
        self, wanted: list[Wanted], prove: Callable[[Sequence[Location]], list[Wanted]]
    ) -> list[Wanted]:
        """`wanted`, and everything that what is among it names, and that names in turn.

        `prove` gives the proof of each place. Rejected for more than NAMES names.
        """
        known = {one.reference: one for one in wanted}
        asked: set[Reference] = set()
        fresh = list(known.values())
        while fresh:
            names = {name for one in fresh for name in self.names(one)} - asked
            asked |= names
            if len(asked) > NAMES:
                raise Rejected(f"more than {NAMES} names in the contents of what is to be saved")
            places = [Location(REGISTRY, name) for name in sorted(names, key=str)]
            found = prove(places) if places else []
            fresh = [one for one in found if one.reference not in known]
            known |= {one.reference: one for one in fresh}
        return list(known.values())

    def names(self, one: Wanted) -> Iterator[Reference]:
        """What one artifact or chart names; nothing for an image."""
        if _is_chart(one.proof.manifest):
            yield from self._charted(one)
        if not _is_artifact(one.proof.manifest):
            return
        from ocipack.cli.contents import Looking  # noqa: PLC0415 - it loads all that renders
        from ocipack.files.workspace import Workspace  # noqa: PLC0415 - as above

        with Workspace() as workspace:
            found = Looking(self.app).inside(workspace, one.source, one.proof)
        self.app.console.findings(Report.of(found.findings))
        for part in found.parts:
            reference = part.reference
            if reference is not None and self._is_unwanted(one, reference):
                continue
            if reference is not None and (reference.tag or reference.digest or _is_image(part)):
                yield reference
            else:
                why = part.reason or ("a range" if reference else "it is in no OCI registry")
                self.app.console.warn(f"{one.reference}: not saved: {part.text}: {why}")
        for unseen, names in found.unseen.items():
            if unseen.severity is not Severity.NOTE:
                shown = ", ".join(sorted(names)[:SHOWN])
                self.app.console.warn(f"{one.reference}: not looked at, {unseen.reason}: {shown}")

    def _charted(self, one: Wanted) -> Iterator[Reference]:
        """The images that a chart runs by its own values, as far as that is certain or likely."""
        from ocipack.cli.charts import AUTO, Finder, archive  # noqa: PLC0415 - start-up
        from ocipack.files.workspace import Workspace  # noqa: PLC0415 - as above
        from ocipack.k8s.images.site import Confidence  # noqa: PLC0415 - as above
        from ocipack.tools.helm import Rendering  # noqa: PLC0415 - as above

        name = str(one.reference)
        with Workspace() as workspace:
            _, data = archive(one.source, one.reference.name, name)
            finder = Finder.of(self.app, workspace, AUTO, Rendering())
            looked = finder.archive(data, name)
        self.app.console.findings(Report.of(looked.findings))
        for image in looked.images:
            reference = image.reference
            sure = image.is_resolved and image.covers(Confidence.LIKELY)
            if sure and reference is not None and not self._is_unwanted(one, reference):
                yield reference

    def _is_unwanted(self, one: Wanted, reference: Reference) -> bool:
        if not any(glob.covers(reference) for glob in self.without):
            return False
        self.app.console.note(f"{one.reference}: left out: {reference}")
        return True


def _is_image(part: Part) -> bool:
    return part.kind == IMAGE


def _is_chart(manifest: Manifest) -> bool:
    return not manifest.is_index and any(one.media_type == CHART for one in manifest.layers)


def _is_artifact(manifest: Manifest) -> bool:
    """Whether it is a tree of files for Flux, rather than an image or a chart."""
    if manifest.is_index:
        return False
    layers = {layer.media_type for layer in manifest.layers}
    return manifest.config.media_type == flux.CONFIG or flux.CONTENT in layers
