"""Images in maps that no schema describes: values of charts, and custom resources.

Charts agree on names, not on shapes: `repository` and `tag` (with `registry` and `digest` or
without), `image: repository:tag` as one text, keys that end in `image`, arguments like
`--…-image=repository:tag`. What is found by a name is LIKELY. A repository without a registry is
MAYBE: the chart may put its own before it, and another registry would answer for another image.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from ocipack.k8s.images.site import (
    Confidence,
    Path,
    Site,
    Style,
    Written,
    is_open,
    judged,
)
from ocipack.oci.reference import Reference

IMAGE_KEY: Final = re.compile(r"image|IMAGE|.*(?:Image|[_-]image|[_-]IMAGE)")
"""What a field that holds an image is called."""

_ARGUMENT: Final = re.compile(r"(--?[\w.-]*image)=(.+)")
_FLAG: Final = re.compile(r"--?[\w.-]*image")
_TAGS: Final = ("tag", "imageTag")
_HELM_WHOLE: Final = 1_000_000  # from here on Helm prints whole numbers with an exponent
_HOLDER: Final = re.compile(r".*image.*", re.IGNORECASE)

NO_REGISTRY: Final = "no registry is named, and the chart may put its own before it"
"""Why a repository in values is only maybe an image of Docker Hub."""


class Tag(NamedTuple):
    """A tag as a chart would print it, where it stands, and why it cannot be told."""

    text: str
    at: Path
    reason: str = ""


def walk(value: Any, path: Path, place: str, written: Written) -> Iterator[Site]:
    """Every image below `value`, which stands at `path`."""
    if isinstance(value, list):
        yield from _items(value, path, place, written)
    if not isinstance(value, Mapping):
        return
    found = list(_in_map(value, path, place, written))
    yield from found
    used = {"image"} if found else set()
    for key, child in value.items():
        if isinstance(child, str) and key not in used and IMAGE_KEY.fullmatch(key):
            yield from whole(child, (*path, key), place)
        elif isinstance(child, Mapping | list):
            yield from walk(child, (*path, key), place, written)
    yield from variable(value, path, place)


def whole(
    text: str, path: Path, place: str, confidence: Confidence = Confidence.LIKELY
) -> Iterator[Site]:
    """An image that stands in one text; nothing if it is none.

    Where only a name says so, a text without tag and digest may be anything.
    """
    if confidence is Confidence.CERTAIN or is_open(text):
        yield Site(path, path, text, place, confidence, reason=judged(text))
    elif not judged(text):
        reference = Reference.familiar(text)
        if reference.tag is not None or reference.digest is not None:
            yield Site(path, path, text, place, confidence)
        elif "/" in text:
            maybe = Confidence.MAYBE
            yield Site(path, path, text, place, maybe, reason="it has no tag")


def arguments(values: Any, path: Path, place: str) -> Iterator[Site]:
    """Images in command lines: `--some-image=X`, or `--some-image` and then `X`."""
    flag = False
    for index, value in enumerate(values if isinstance(values, list) else ()):
        text = value if isinstance(value, str) else ""
        here = (*path, str(index))
        match = _ARGUMENT.fullmatch(text)
        if match is not None:
            yield from whole(match[2], here, f"argument {match[1]} of {place}")
        elif flag:
            yield from whole(text, here, f"argument of {place}")
        flag = _FLAG.fullmatch(text) is not None


def variable(value: Mapping[str, Any], path: Path, place: str) -> Iterator[Site]:
    """An image in an entry `{name: SOME_IMAGE, value: X}` of an environment."""
    name, text = value.get("name"), value.get("value")
    if isinstance(name, str) and isinstance(text, str) and is_variable(name):
        yield from whole(text, (*path, "value"), f"variable {name} of {place}")


def is_variable(name: str) -> bool:
    """Whether an environment variable of this name holds an image."""
    return name.endswith("_IMAGE") or name == "IMAGE" or name.startswith("RELATED_IMAGE_")


def _items(values: list[Any], path: Path, place: str, written: Written) -> Iterator[Site]:
    for index, child in enumerate(values):
        yield from walk(child, (*path, str(index)), place, written)
    yield from arguments(values, path, place)


def _in_map(value: Mapping[str, Any], path: Path, place: str, written: Written) -> Iterator[Site]:
    """The image that a map names by several keys, if it is such a map."""
    repository = value.get("repository")
    if isinstance(repository, str) and repository and "://" not in repository:
        if "version" in value and not any(key in value for key in _TAGS):
            name = value.get("image")
            base = f"{repository}/{name}" if isinstance(name, str) and name else repository
            yield from _by_version(base, value, path, place)
            return
        yield from _split(repository, value, path, place, written)
        return
    image = value.get("image")
    if isinstance(image, str) and image and any(_is_scalar(value.get(key)) for key in _TAGS):
        last = image.rpartition("/")[2]
        if ":" not in last and "@" not in last and "://" not in image:
            yield from _split(image, value, path, place, written)


def _by_version(base: str, value: Mapping[str, Any], path: Path, place: str) -> Iterator[Site]:
    text = f"{base}:{value['version']}"
    host = base.partition("/")[0]
    if "." in host and not judged(text):
        reason = "a digest does not fit `version`"
        at = (*path, "version")
        yield Site(path, at, text, place, Confidence.MAYBE, reason=reason)


def _split(
    repository: str, value: Mapping[str, Any], path: Path, place: str, written: Written
) -> Iterator[Site]:
    registry = value.get("registry")
    base = f"{registry}/{repository}" if isinstance(registry, str) and registry else repository
    said = any(key in value for key in (*_TAGS, "digest", "sha"))
    if not said and not (path and _HOLDER.fullmatch(path[-1])):
        return  # other things have repositories too: charts, backups, sources
    if not is_open(base) and judged(base):
        return  # not an image: a path, a chart's address
    tag = tagged(value, path, written)
    digest, style, at = _digest(value, path, tag, written)
    text = f"{base}:{tag.text}" if tag.text else base
    if digest:
        text = f"{text.partition('@')[0]}@{digest}"
    reason = tag.reason if not digest else ""
    if not tag.text and not digest and not reason:
        reason = "it has no tag: the chart decides"
    confidence = Confidence.LIKELY
    if not has_registry(base) and not is_open(base):
        confidence, reason = Confidence.MAYBE, reason or NO_REGISTRY
        if "@sha" in text and not judged(text):
            reason = ""
    yield Site(path, at, text, place, confidence, style, reason=reason or judged(text))


def _text(value: Mapping[str, Any], key: str, path: Path, written: Written) -> str | None:
    """A field that is text, or that is there with nothing written in it."""
    found = value.get(key)
    if found is None and key in value and written((*path, key)) == "":
        return ""
    return found if isinstance(found, str) else None


def _digest(
    value: Mapping[str, Any], path: Path, tag: Tag, written: Written
) -> tuple[str, Style, Path]:
    """The digest that the map has, how one would be written, and where."""
    digest, sha = (_text(value, key, path, written) for key in ("digest", "sha"))
    if digest is not None:
        return digest, Style.FILL if not digest else Style.APPEND, (*path, "digest")
    if sha is not None and "digest" not in value:
        return (
            f"sha256:{sha}" if sha else "",
            Style.HEX if not sha else Style.APPEND,
            (*path, "sha"),
        )
    return "", Style.APPEND, tag.at


def tagged(value: Mapping[str, Any], path: Path, written: Written) -> Tag:
    """The tag of a map: as text, or as a number that Helm prints as it is written."""
    key = next((key for key in _TAGS if key in value), _TAGS[0])
    tag, at = value.get(key), (*path, key)
    if tag is None or tag == "":
        return Tag("", at)
    said = written(at)
    if isinstance(tag, str) and said in (None, tag):
        return Tag(tag, at)
    if isinstance(tag, int | float) and not isinstance(tag, bool):
        plain = str(tag)
        if said in (None, plain) and abs(tag) < _HELM_WHOLE and "e" not in plain:
            return Tag(plain, at)
    if not _is_scalar(tag):
        return Tag("", at, "its tag is no text")
    shown = said if said is not None else str(tag)
    return Tag(shown, at, f"YAML does not read the tag {shown[:60]} as text: put it in quotes")


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float) and value != ""


def has_registry(base: str) -> bool:
    """Whether a repository's name begins with a registry, as container tools tell it."""
    host, slash, _ = base.partition("/")
    return bool(slash) and ("." in host or ":" in host or host == "localhost")
