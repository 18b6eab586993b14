"""Charts as `helm push` makes artifacts of them: compared with what the real one made."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from charts import SHOP, chart, provenance, shop
from tars import entry, layer

from ocipack.errors import IntegrityError
from ocipack.helm import metadata
from ocipack.helm.chart import (
    ARCHIVE,
    LIMITS,
    PROVENANCE_BYTES,
    Package,
    described,
    files,
    is_tag,
    tag,
)
from ocipack.helm.metadata import Metadata, is_version
from ocipack.tree.limits import Limits

CASES = json.loads((Path(__file__).parents[1] / "vectors/helm/pushed.json").read_text())


@pytest.mark.parametrize("case", CASES)
def test_the_bytes_are_helms_but_for_the_time(case: str) -> None:
    """tests/interop/test_charts.py makes the same comparison with the real helm."""
    wanted = CASES[case]
    archive = chart(wanted["chart"], wanted["files"])

    plain, proven = Package.of(archive), Package.of(archive, provenance(archive))

    assert plain.metadata.config.decode() == wanted["config"]
    assert plain.artifact.manifest.raw.decode() == wanted["manifest"]
    assert proven.artifact.manifest.raw.decode() == wanted["proven"]
    assert "image.created" not in wanted["manifest"]


def test_an_artifact_is_complete() -> None:
    archive = shop()
    package = Package.of(archive, provenance(archive))

    manifest = package.artifact.manifest

    contents = [b"".join(package.artifact.fetch(one)) for one in manifest.children]
    assert archive in contents
    assert provenance(archive) in contents
    assert len(contents) == 3
    assert package.content.media_type.endswith("chart.content.v1.tar+gzip")


def test_the_same_chart_is_the_same_artifact() -> None:
    assert Package.of(shop()).artifact.root == Package.of(shop()).artifact.root


REFUSED = {
    "no name": "version: 1.0.0\n",
    "no version": "name: shop\n",
    "a name that is a path": "name: a/b\nversion: 1.0.0\n",
    "a name that leads up": "name: ..\nversion: 1.0.0\n",
    "a version that is none": "name: shop\nversion: one\n",
    "a type that is none": SHOP.format("1.0.0") + "type: plugin\n",
    "a list for text": SHOP.format("1.0.0") + "home: [a]\n",
    "text for a list": SHOP.format("1.0.0") + "keywords: a\n",
    "text for a flag": SHOP.format("1.0.0") + "deprecated: 'true'\n",
    "a list of annotations": SHOP.format("1.0.0") + "annotations: [a]\n",
    "nobody": SHOP.format("1.0.0") + "maintainers: [null]\n",
    "two of a name": SHOP.format("1.0.0") + "dependencies: [{name: a}, {name: a}]\n",
    "an odd alias": SHOP.format("1.0.0") + "dependencies: [{name: a, alias: 'b c'}]\n",
    "a deep import": SHOP.format("1.0.0") + "dependencies: [{name: a, import-values: [[1]]}]\n",
    "digits without end": SHOP.format("1.0.0") + "appVersion: 1234567890123456\n",
    "nothing": "",
    "no mapping": "- a\n",
    "no YAML": "a: [",
    "a circle": "name: &a [*a]\n",
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_helm_would_not_load_is_refused_by_place(case: str) -> None:
    with pytest.raises(IntegrityError, match=r"Chart\.yaml"):
        Metadata.read(REFUSED[case].encode())


def test_the_place_of_a_fault_is_said() -> None:
    with pytest.raises(IntegrityError, match=r"^Chart\.yaml:4:7: home: should be text$"):
        Metadata.read((SHOP.format("1.0.0") + "home: [a]\n").encode())


def test_text_of_chart_yaml_has_a_bound() -> None:
    text = SHOP.format("1.0.0")
    fits = text + "#" * (metadata.BYTES - len(text))
    assert Metadata.read(fits.encode()).name == "shop"

    with pytest.raises(IntegrityError, match=f"longer than {metadata.BYTES}"):
        Metadata.read(fits.encode() + b"#")
    with pytest.raises(IntegrityError, match=f"longer than {metadata.BYTES}"):
        described(chart(fits + "#"))


@pytest.mark.parametrize(
    ("archive", "why"),
    [
        (layer(entry("shop/values.yaml", b"")), r"no Chart\.yaml"),
        (layer(entry("Chart.yaml", b"")), "not in its directory"),
        (layer(entry("a/Chart.yaml", b""), entry("b/Chart.yaml", b"")), "not in its directory"),
        (layer(entry("shop/Chart.yaml", b""), entry("shop/Chart.yaml", b"")), "there twice"),
        (layer(entry("shop/../Chart.yaml", b"")), "tar"),
        (layer(entry("shop/Chart.yaml", kind=b"2", linkname=b"/etc/passwd")), "tar"),
        (b"PK\3\4", "gzip"),
        (shop()[:-9], "gzip"),
        (gzip.compress(b"", mtime=0), "tar"),
    ],
    ids=["bare", "above", "two", "twice", "outside", "link", "zip", "cut", "empty"],
)
def test_an_archive_that_is_no_chart_is_refused(archive: bytes, why: str) -> None:
    with pytest.raises(IntegrityError, match=why):
        Package.of(archive)


def test_an_archive_has_bounds() -> None:
    assert (ARCHIVE, LIMITS.tar, LIMITS.entries) == (32 << 20, 100 << 20, 20_000)
    with pytest.raises(IntegrityError, match=f"more than {ARCHIVE} bytes"):
        Package.of(bytes(ARCHIVE + 1))
    with pytest.raises(IntegrityError, match="more than the 3000 bytes"):
        files(shop("1.0.0", {"a": "a" * 3000}), limit=9999, wanted=bool, limits=Limits(tar=3000))


def test_files_of_a_chart_have_bounds_of_their_own() -> None:
    archive = shop("1.0.0", {"a": "123", "b": "12345"})
    assert files(archive, limit=3, wanted=lambda name: name == "a") == {"a": b"123"}
    with pytest.raises(IntegrityError, match="b: longer than 4 bytes"):
        files(archive, limit=4, wanted=lambda name: name in ("a", "b"))


def test_a_byte_order_mark_is_taken_off_as_helm_does() -> None:
    assert described(chart("\ufeff" + SHOP.format("1.0.0"))).version == "1.0.0"


def test_a_provenance_file_is_about_its_archive() -> None:
    for wrong in (provenance(shop("9.9.9")), b"<html>" + provenance(shop())[6:]):
        with pytest.raises(IntegrityError, match="provenance"):
            Package.of(shop(), wrong)
    assert PROVENANCE_BYTES == 1024 * 1024


def test_versions_and_their_tags() -> None:
    assert tag("1.2.0-rc.1+build.7") == "1.2.0-rc.1_build.7"
    assert [is_version(text) for text in ("1.2.3", "v1", "1.2-a+b", "1.2.3.4", "", "1_0")] == [
        *(True, True, True, False, False, False)
    ]
    assert not is_tag("a" * 129)
