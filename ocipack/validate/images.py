"""Rules about images: what runs is named by its digest."""

from __future__ import annotations

from collections.abc import Iterator

from ocipack.errors import Misuse
from ocipack.k8s.images.podspec import images
from ocipack.k8s.resource import Resource
from ocipack.oci.reference import Reference
from ocipack.report import Finding, Severity
from ocipack.validate.objects import finding

DIGEST = "image-digest"
MALFORMED = "image-malformed"
MISSING = "image-missing"


def pinned(resource: Resource, *, allow_tags: bool = False) -> Iterator[Finding]:
    """Every image of a typed pod spec is a reference with a digest.

    With `allow_tags` a missing digest is a warning; no image, or no reference, stays an error.
    """
    for pointer, text in images(resource):
        if not text:
            yield finding(MISSING, "there is no image", resource, pointer=pointer)
            continue
        try:
            reference = Reference.familiar(text)
        except Misuse as e:
            yield finding(MALFORMED, str(e), resource, pointer=pointer, hint=e.hint)
            continue
        if reference.digest is None:
            yield finding(
                DIGEST,
                f"{text} has no digest",
                resource,
                pointer=pointer,
                severity=Severity.WARNING if allow_tags else Severity.ERROR,
                hint=f"a tag can be moved after this was checked: write {text}@sha256:…",
            )
