"""Charts of classic repositories by the commands that take places, and by `mirror`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from charts import Shelf, provenance, sha256, shop
from registry import Registry

from ocipack.helm.chart import Package

Run = Callable[..., tuple[int, str, str]]
HEAD = "apiVersion: ocipack.dev/v1alpha1\nkind: Mirror\nunsigned: true\n"
VERSIONS = ("1.0.0", "1.1.0", "2.0.0+build.7")


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    """A repository with three versions of shop, and their provenance."""
    with Shelf() as made:
        made.publish({version: shop(version) for version in VERSIONS}, prov=True)
        yield made


@pytest.fixture
def there() -> Iterator[Registry]:
    with Registry() as made:
        yield made


def root(version: str) -> str:
    archive = shop(version)
    return str(Package.of(archive, provenance(archive)).artifact.root.digest)


def write(sources: str, there: Registry) -> None:
    Path("mirror.yaml").write_text(f"{HEAD}to: oci://{there.name}/m\nsources:\n{sources}")


def mirrored(ocipack: Run, *arguments: str) -> tuple[int, dict[str, int], str]:
    code, _, err = ocipack("mirror", *arguments, "--output", "json=report.json")
    return code, json.loads(Path("report.json").read_text()).get("counts", {}), err


def test_a_mirror_takes_versions_by_range_and_does_nothing_the_second_time(
    ocipack: Run, shelf: Shelf, there: Registry
) -> None:
    write(
        f"- {{chart: shop, repository: '{shelf.address}/', select: {{semver: '>=1.1'}}}}\n", there
    )

    assert mirrored(ocipack)[:2] == (0, {"copied": 2})

    name = f"m/{shelf.host.replace(':', '-')}/stable/shop"
    assert there.repository(name).tags == {
        "1.1.0": root("1.1.0"),
        "2.0.0_build.7": root("2.0.0+build.7"),
    }
    for data in (shop("1.1.0"), provenance(shop("1.1.0"))):
        assert f"sha256:{sha256(data)}" in there.repository(name).blobs
    shelf.requests.clear()
    assert mirrored(ocipack)[:2] == (0, {"skipped": 2})
    assert len(shelf.requests) == 1 + 2 * 2
    assert shelf.paths().count("/stable/index.yaml") == 1


def test_a_version_that_was_published_anew_is_drift(
    ocipack: Run, shelf: Shelf, there: Registry
) -> None:
    write(f"- {{chart: 'shop:1.0.0', repository: '{shelf.address}'}}\n", there)
    assert mirrored(ocipack)[:2] == (0, {"copied": 1})
    shelf.publish({"1.0.0": shop("1.0.0", {"values.yaml": "new: true\n"})}, prov=True)

    assert mirrored(ocipack)[:2] == (1, {"drifted": 1})


def test_a_digest_says_which_archive_where_the_index_says_none(
    ocipack: Run, shelf: Shelf, there: Registry
) -> None:
    shelf.publish({"1.0.0": shop("1.0.0")}, prov=True, digest=False)
    write(f"- {{chart: 'shop:1.0.0', repository: '{shelf.address}'}}\n", there)
    code, _, err = mirrored(ocipack)
    assert code == 1
    assert "no sha256" in err

    digest = root("1.0.0")
    write(f"- {{chart: 'shop:1.0.0@{digest}', repository: '{shelf.address}'}}\n", there)

    assert mirrored(ocipack)[:2] == (0, {"copied": 1})


def test_signatures_are_not_what_such_a_repository_has(
    ocipack: Run, shelf: Shelf, there: Registry, public: str
) -> None:
    write(f"- {{chart: 'shop:1.0.0', repository: '{shelf.address}'}}\n", there)

    code, counts, err = mirrored(ocipack, "--key", public)

    assert (code, counts) == (1, {"failed": 1})
    assert "signature" in err
    assert not there.repositories.get(f"m/{shelf.host.replace(':', '-')}/stable/shop")


def test_what_is_called_alike_in_a_registry_is_refused(
    ocipack: Run, shelf: Shelf, there: Registry
) -> None:
    write(
        f"- {{chart: 'shop:1.0.0', repository: '{shelf.address}'}}\n"
        f"- {{chart: '{shelf.host}/stable/shop:1.1.0'}}\n",
        there,
    )

    code, _, err = ocipack("mirror")

    assert code == 2
    assert "is in a registry and in a repository" in err


def test_maps_for_nodes_know_registries_only(ocipack: Run, shelf: Shelf, there: Registry) -> None:
    write(f"- {{chart: 'shop:1.0.0', repository: '{shelf.address}'}}\n", there)

    assert ocipack("mirror", "--map-out", "map.yaml")[0] == 0

    assert Path("map.yaml").read_text() == ""


def test_copy_list_inspect_and_pins_take_the_place_of_a_chart(
    ocipack: Run, shelf: Shelf, there: Registry
) -> None:
    place = f"helm+{shelf.address}/shop"
    code, out, err = ocipack("copy", f"{place}:2.0.0+build.7", f"oci://{there.name}/shop")

    assert (code, out) == (0, f"oci://{there.name}/shop@{root('2.0.0+build.7')}\n"), err
    assert ocipack("list", place)[1].splitlines() == ["1.0.0", "1.1.0", "2.0.0_build.7"]
    code, out, err = ocipack("inspect", f"{place}:1.0.0")
    assert code == 0, err
    assert root("1.0.0") in out
    assert "vnd.cncf.helm.chart.content" in out
    pinned = f"{place}:1.0.0@{root('1.0.0')}"
    assert ocipack("copy", pinned, f"oci://{there.name}/shop")[0] == 0
    code, _, err = ocipack("copy", f"{place}:1.0.0@{root('1.1.0')}", f"oci://{there.name}/shop")
    assert code == 3
    assert "there is no sha256" in err


def test_nothing_is_written_to_such_a_repository(
    ocipack: Run, shelf: Shelf, hello: Path, key: str
) -> None:
    place = f"helm+{shelf.address}/shop:9.9.9"

    for arguments in (
        ("copy", f"helm+{shelf.address}/shop:1.0.0", place, "--allow-unsigned"),
        ("ship", str(hello), "--to", place, "--key", key, "--allow-dirty"),
        ("pack", str(hello), "--to", place.removesuffix(":9.9.9")),
        ("sign", f"helm+{shelf.address}/shop:1.0.0", "--key", key),
        ("tag", f"helm+{shelf.address}/shop:1.0.0", "x", "--allow-unsigned"),
    ):
        code, out, err = ocipack(*arguments)
        assert (code, out) == (2, ""), (arguments, err)
        assert "only read" in err, arguments


def test_an_archive_carries_charts_by_place_and_by_mirror_file(
    ocipack: Run, shelf: Shelf, there: Registry
) -> None:
    write(f"- {{chart: shop, repository: '{shelf.address}', select: {{semver: '1'}}}}\n", there)
    place = f"helm+{shelf.address}/shop:2.0.0+build.7"
    code, _, err = ocipack(
        *("airgap", "save", place, "-f", "mirror.yaml", "-o", "site.tar", "--allow-unsigned")
    )
    assert code == 0, err
    shelf.files.clear()

    code, out, err = ocipack(
        *("airgap", "load", "site.tar", "--to", f"oci://{there.name}/m", "--allow-unsigned")
    )

    assert code == 0, err
    assert len(out.splitlines()) == 3
    name = f"m/{shelf.host.replace(':', '-')}/stable/shop"
    tags = {version.replace("+", "_"): root(version) for version in VERSIONS}
    assert {tag: there.repository(name).tags[tag] for tag in tags} == tags
