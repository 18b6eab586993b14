"""Classic repositories as a Source: what is believed, what is sent where, what is refused."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from charts import Shelf, chart, index, provenance, sha256, shop

from ocipack.copy import copy
from ocipack.errors import Denied, IntegrityError, Misuse, NotFound, Rejected, StoreError
from ocipack.helm import index as index_module
from ocipack.helm.chart import Package
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.store import manifest
from ocipack.stores import charts as module
from ocipack.stores.auth.config import Credentials
from ocipack.stores.auth.credential import Credential
from ocipack.stores.charts import ChartRepository, ChartStore
from ocipack.stores.downloads import Downloads
from ocipack.stores.http.settings import Settings
from ocipack.stores.http.transport import Transport
from ocipack.stores.memory import MemoryStore


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    with Shelf() as made:
        yield made


@pytest.fixture
def other() -> Iterator[Shelf]:
    """Another host: another port is one."""
    with Shelf() as made:
        yield made


def store(shelf: Shelf, *hints: str, name: str = "shop", given: str = "") -> ChartStore:
    credentials = {given: Credential("test", "user", "pass")} if given else {}
    transport = Transport(Settings(tries=1))
    repository = ChartRepository(transport, Credentials(given=credentials), shelf.address)
    return ChartStore(repository, name, hints)


def test_a_version_is_the_artifact_that_helm_would_push(shelf: Shelf) -> None:
    archives = {version: shop(version) for version in ("1.2.0", "1.3.0-rc.1+build.7")}
    shelf.publish(archives, prov=True)
    charts, there = store(shelf), MemoryStore()

    assert list(charts.tags()) == ["1.2.0", "1.3.0-rc.1_build.7"]
    for version, archive in archives.items():
        root = charts.resolve(version.replace("+", "_"))
        assert root == Package.of(archive, provenance(archive)).artifact.root
        assert charts.resolve(str(root.digest)) == root
        copy(charts, there, root, tag="x")
        assert [one for one in there.content.values() if one == archive]
        assert list(charts.referrers(root)) == []
    assert shelf.paths().count("/stable/index.yaml") == 1


def test_each_file_is_asked_for_once_though_it_is_looked_into_before_it_is_copied(
    shelf: Shelf,
) -> None:
    shelf.publish({"1.2.0": shop()})
    charts = store(shelf)

    copy(charts, MemoryStore(), charts.resolve("1.2.0"))

    assert shelf.paths() == [
        *("/stable/index.yaml", "/stable/shop-1.2.0.tgz", "/stable/shop-1.2.0.tgz.prov")
    ]


def test_what_is_not_held_any_more_is_asked_for_again_and_held_to_its_digest(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HELD", 100)
    shelf.publish({"1.2.0": shop()})
    charts = store(shelf)
    root = charts.resolve("1.2.0")

    copy(charts, MemoryStore(), root)

    assert shelf.paths().count("/stable/shop-1.2.0.tgz") == 2
    shelf.files["/stable/shop-1.2.0.tgz"] = shop("6.6.6")
    with pytest.raises(IntegrityError, match="the index says"):
        copy(charts, MemoryStore(), root)


def test_an_archive_other_than_the_index_says_is_refused(shelf: Shelf) -> None:
    shelf.publish({"1.2.0": shop()})
    shelf.files["/stable/shop-1.2.0.tgz"] = shop("1.2.0", {"values.yaml": "evil: true\n"})

    with pytest.raises(IntegrityError, match=f"the index says sha256:{sha256(shop())}"):
        store(shelf).resolve("1.2.0")


def test_an_archive_of_another_chart_or_version_is_refused(shelf: Shelf) -> None:
    for archive in (shop("6.6.6"), chart("name: other\nversion: 1.2.0\n")):
        shelf.publish({"1.2.0": archive})
        with pytest.raises(IntegrityError, match=r"the index says shop 1\.2\.0, and the archive"):
            store(shelf).resolve("1.2.0")


def test_without_a_hash_only_the_digest_of_the_artifact_will_do(shelf: Shelf) -> None:
    shelf.publish({"1.2.0": shop()}, digest=False)
    wanted = Package.of(shop()).artifact.root

    with pytest.raises(Rejected, match="no sha256") as refused:
        store(shelf, "1.2.0").resolve("1.2.0")
    assert "@sha256" in refused.value.hint
    with pytest.raises(NotFound, match="there is no sha256"):
        store(shelf).resolve(str(wanted.digest))
    pinned = store(shelf, "1.2.0")
    assert pinned.resolve(str(wanted.digest)) == wanted
    copy(pinned, MemoryStore(), wanted)
    with pytest.raises(Rejected, match="no sha256"):
        pinned.resolve("1.2.0")

    shelf.files["/stable/shop-1.2.0.tgz"] = shop("1.2.0", {"values.yaml": "evil: true\n"})
    with pytest.raises(NotFound):
        store(shelf, "1.2.0").resolve(str(wanted.digest))


def test_a_version_with_two_archives_in_the_index_is_refused_and_no_other(shelf: Shelf) -> None:
    shelf.publish({"1.2.0": shop(), "1.3.0": shop("1.3.0")})
    one = {"version": "1.2.0", "urls": "[shop-1.2.0.tgz]", "digest": sha256(shop())}
    good = {"version": "1.3.0", "urls": "[shop-1.3.0.tgz]", "digest": sha256(shop("1.3.0"))}
    shelf.files["/stable/index.yaml"] = index({"shop": [one, one, good]})
    assert store(shelf).resolve("1.2.0") == Package.of(shop()).artifact.root

    other = one | {"digest": "b" * 64}
    shelf.files["/stable/index.yaml"] = index({"shop": [one, other, good]})
    charts = store(shelf)
    assert list(charts.tags()) == ["1.2.0", "1.3.0"]
    with pytest.raises(Rejected, match=r"two archives for 1\.2\.0"):
        charts.resolve("1.2.0")
    charts.resolve("1.3.0")


def test_versions_that_helm_would_not_see_are_no_tags(shelf: Shelf) -> None:
    entries = [
        {"version": version, "urls": "[a.tgz]", "digest": "a" * 64}
        for version in ("1.0.0", "latest", "1.0.0/../x", "1." + "0" * 200)
    ]
    shelf.files["/stable/index.yaml"] = index({"shop": entries})

    assert list(store(shelf).tags()) == ["1.0.0"]


def test_what_is_not_there_is_not_found(shelf: Shelf) -> None:
    with pytest.raises(NotFound, match=r"index\.yaml"):
        store(shelf).tags()
    shelf.publish({"1.2.0": shop()})
    charts = store(shelf)
    for name in ("1.2.1", "sha256:" + "0" * 64):
        with pytest.raises(NotFound):
            charts.resolve(name)
    with pytest.raises(NotFound):
        charts.fetch(Descriptor.of("x/y", b"nothing"))
    with pytest.raises(NotFound, match="no chart 'other'"):
        store(shelf, name="other").tags()
    del shelf.files["/stable/shop-1.2.0.tgz"]
    with pytest.raises(NotFound, match=r"shop-1\.2\.0\.tgz"):
        charts.resolve("1.2.0")


@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_provenance_file_may_be_missing_in_the_ways_of_servers(shelf: Shelf, status: int) -> None:
    shelf.publish({"1.2.0": shop()}, prov=True)
    shelf.status["/stable/shop-1.2.0.tgz.prov"] = status

    assert store(shelf).resolve("1.2.0") == Package.of(shop()).artifact.root


def test_a_page_in_place_of_a_provenance_file_is_none_but_anothers_is_refused(
    shelf: Shelf,
) -> None:
    shelf.publish({"1.2.0": shop()})
    shelf.files["/stable/shop-1.2.0.tgz.prov"] = b"<!doctype html><p>Not found"
    assert store(shelf).resolve("1.2.0") == Package.of(shop()).artifact.root

    shelf.files["/stable/shop-1.2.0.tgz.prov"] = provenance(shop("9.9.9"))
    with pytest.raises(IntegrityError, match="provenance file is not about"):
        store(shelf).resolve("1.2.0")


def test_a_provenance_file_that_cannot_be_had_is_not_taken_for_none(shelf: Shelf) -> None:
    shelf.publish({"1.2.0": shop()}, prov=True)
    shelf.status["/stable/shop-1.2.0.tgz.prov"] = 500

    with pytest.raises(StoreError, match=r"\.prov: 500"):
        store(shelf).resolve("1.2.0")


@pytest.mark.parametrize("form", ["{name}", "./{name}", "/stable/{name}", "../stable/{name}"])
def test_addresses_are_relative_to_the_repository(shelf: Shelf, form: str) -> None:
    shelf.publish({"1.2.0": shop()})
    text = shelf.files["/stable/index.yaml"].decode()
    changed = text.replace("[shop-1.2.0.tgz]", f"[{form.format(name='shop-1.2.0.tgz')}]")
    shelf.files["/stable/index.yaml"] = changed.encode()

    assert store(shelf).resolve("1.2.0") == Package.of(shop()).artifact.root


def elsewhere(shelf: Shelf, address: str) -> None:
    """Let the index of `shelf` lead to `address`."""
    entry = {"version": "1.2.0", "urls": f"['{address}']", "digest": sha256(shop())}
    shelf.files["/stable/index.yaml"] = index({"shop": [entry]})


def test_credentials_go_to_the_host_that_they_are_for_and_to_no_other(
    shelf: Shelf, other: Shelf
) -> None:
    other.files["/shop.tgz"] = shop()
    elsewhere(shelf, f"http://{other.host}/shop.tgz")
    shelf.users["user"] = "pass"

    store(shelf, given=shelf.host).resolve("1.2.0")

    assert [bool(one.authorization) for one in shelf.requests] == [False, True]
    assert not [one for one in other.requests if one.authorization]
    other.users["user"] = "pass"
    with pytest.raises(Denied, match="401"):
        store(shelf, given=shelf.host).resolve("1.2.0")
    assert not [one for one in other.requests if one.authorization]
    shelf.users["user"] = "another"
    with pytest.raises(Denied) as refused:
        store(shelf, given=shelf.host).resolve("1.2.0")
    assert "pass" not in str(refused.value).replace("test", "")


def test_credentials_do_not_follow_a_redirect(shelf: Shelf, other: Shelf) -> None:
    shelf.publish({"1.2.0": shop()})
    shelf.users["user"] = "pass"
    shelf.moved["/stable/shop-1.2.0.tgz"] = f"http://{other.host}/shop.tgz"
    other.files["/shop.tgz"] = shop()

    store(shelf, given=shelf.host).resolve("1.2.0")

    assert [(one.path, one.authorization) for one in other.requests] == [("/shop.tgz", "")]


def test_plain_http_is_for_hosts_that_may_be_asked_so() -> None:
    with pytest.raises(Misuse, match="plain HTTP") as refused:
        ChartRepository(Transport(), Credentials(), "http://charts.example.com/stable")
    assert "--plain-http charts.example.com" in refused.value.hint
    plain = Transport(Settings(plain=frozenset({"charts.example.com"})))
    ChartRepository(plain, Credentials(), "http://charts.example.com/stable")


@pytest.mark.parametrize("address", ["https://", "https://[::1/x", "https://a:b@c.example", "x"])
def test_an_address_that_is_none_is_misuse(address: str) -> None:
    with pytest.raises(Misuse, match="not an address"):
        ChartRepository(Transport(), Credentials(), address)


def test_an_index_cannot_lead_to_plain_http_or_files_or_credentials(shelf: Shelf) -> None:
    for address in (
        "file:///etc/passwd",
        "ftp://charts.example.com/shop.tgz",
        "https://user:secret@charts.example.com/shop.tgz",
        "https://charts.example.com/a b.tgz",
    ):
        elsewhere(shelf, address)
        with pytest.raises(StoreError) as refused:
            store(shelf).resolve("1.2.0")
        assert "secret" not in str(refused.value)
    elsewhere(shelf, "http://charts.example.com/shop.tgz")
    with pytest.raises(StoreError, match="leads to plain HTTP"):
        store(shelf).resolve("1.2.0")


def test_a_chart_that_is_in_a_registry_is_named_there(shelf: Shelf) -> None:
    elsewhere(shelf, "oci://registry.example/charts/shop:1.2.0")

    with pytest.raises(Rejected, match=r"kept in a registry: oci://registry\.example/charts/shop"):
        store(shelf).resolve("1.2.0")


def test_the_coding_that_a_server_puts_on_an_archive_is_no_part_of_it(shelf: Shelf) -> None:
    shelf.publish({"1.2.0": shop()})
    path = "/stable/shop-1.2.0.tgz"
    shelf.headers[path] = {"Content-Encoding": "gzip"}  # said of the archive's own
    assert store(shelf).resolve("1.2.0") == Package.of(shop()).artifact.root

    shelf.files[path] = gzip.compress(shop())
    assert store(shelf).resolve("1.2.0") == Package.of(shop()).artifact.root

    shelf.headers["/stable/index.yaml"] = {"Content-Encoding": "gzip"}
    shelf.files["/stable/index.yaml"] = gzip.compress(shelf.files["/stable/index.yaml"])
    assert store(shelf).resolve("1.2.0") == Package.of(shop()).artifact.root


def test_what_a_server_sends_has_bounds(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.publish({"1.2.0": shop()}, prov=True)
    for name, bound in (("ARCHIVE", 50), ("PROVENANCE_BYTES", 50)):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, bound)
            with pytest.raises(IntegrityError, match="longer than 50 bytes"):
                store(shelf).resolve("1.2.0")
    monkeypatch.setattr(index_module, "BYTES", 50)
    with pytest.raises(IntegrityError, match="longer than 50 bytes"):
        store(shelf).resolve("1.2.0")


def test_a_body_that_does_not_say_how_long_it_is_has_bounds_too(shelf: Shelf) -> None:
    shelf.files["/x"] = b"x" * 5000
    shelf.unsized.add("/x")
    downloads = Downloads(Transport(Settings(tries=1)), Credentials())

    assert len(downloads.file(f"http://{shelf.host}/x", 5000)) == 5000
    with pytest.raises(IntegrityError, match="longer than 4999 bytes"):
        downloads.file(f"http://{shelf.host}/x", 4999)


def test_a_coding_is_not_taken_off_beyond_the_bounds(shelf: Shelf) -> None:
    shelf.files["/x"] = gzip.compress(b"x" * 5000)
    shelf.headers["/x"] = {"Content-Encoding": "gzip"}
    downloads = Downloads(Transport(Settings(tries=1)), Credentials())

    assert downloads.file(f"http://{shelf.host}/x", 5000) == b"x" * 5000
    assert downloads.file(f"http://{shelf.host}/x", 4999) == shelf.files["/x"]


def test_memory_for_archives_is_bounded(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    archives = {f"1.{n}.0": shop(f"1.{n}.0", {"x": str(n)}) for n in range(20)}
    shelf.publish(archives)
    most = 3 * max(map(len, archives.values()))
    monkeypatch.setattr(module, "HELD", most)
    charts = store(shelf)

    for version in archives:
        manifest(charts, charts.resolve(version))

    assert 0 < sum(map(len, charts._held.values())) <= most


def test_the_password_of_a_helper_or_file_is_used(shelf: Shelf, tmp_path: Path) -> None:
    shelf.publish({"1.2.0": shop()})
    shelf.users["user"] = "pass"
    config = tmp_path / "config.json"
    config.write_text(f'{{"auths": {{"{shelf.host}": {{"auth": "dXNlcjpwYXNz"}}}}}}')
    transport = Transport(Settings(tries=1))

    repository = ChartRepository(transport, Credentials([config]), shelf.address)

    assert list(ChartStore(repository, "shop").tags()) == ["1.2.0"]


def test_a_name_in_another_form_is_no_chart(shelf: Shelf) -> None:
    shelf.publish({"1.2.0": shop()})
    with pytest.raises(NotFound):
        list(store(shelf, name="SHOP").tags())
