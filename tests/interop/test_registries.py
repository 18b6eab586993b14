"""Real registries: behind TLS with client certificates, and what `registry check` says of them."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import pytest
import trustme
from interop import servers
from interop.peers import Desk
from interop.wire import Repository

from ocipack.stores.oras import Registry
from ocipack.stores.registry.registries import Registries

NAME = "registry.corp.example"


def rows(out: str) -> dict[str, str]:
    return {line.split()[0]: line.split()[1] for line in out.splitlines()}


@pytest.mark.interop("docker-registry", "refregd")
def test_what_each_registry_can_do(
    desk: Desk, server: servers.Server, repository: Repository
) -> None:
    repository.put_image("content", "v1")
    place = f"{repository.host}/{repository.name}"
    read = rows(desk.ocipack("registry", "check", place).expect())
    wrote = rows(desk.ocipack("registry", "check", place, "--write").expect())
    assert {name: wrote[name] for name in read} == read
    referrers = "yes" if server.has_referrers else "no"
    assert read["referrers"] == referrers
    assert wrote.get("subject", "no") == referrers
    assert wrote["mount"] == ("yes" if server.mounts else "no")
    yes = ("connection", "api", "auth", "tags", "head", "upload", "chunked", "manifest", "delete")
    assert {wrote[name] for name in yes} == {"yes"}
    assert repository.tags() == ["v1"]
    for name in ("ocipack-check", "ocipack-check-mount"):
        assert Repository(repository.host, f"{repository.name}/{name}").tags() == []


@pytest.mark.interop("docker-registry")
def test_a_real_registry_behind_a_private_authority_wants_a_client_certificate(
    desk: Desk, tmp_path: Path
) -> None:
    """Reached by its address, on a port of its own, under another name: by one file."""
    authority, folder = trustme.CA(organization_name="Corp"), tmp_path / "pki"
    folder.mkdir()
    authority.cert_pem.write_to_path(folder / "CA.crt")
    for name, who in (("server", NAME), ("client", "deployer@corp.example")):
        leaf = authority.issue_cert(who)
        leaf.cert_chain_pems[0].write_to_path(folder / f"{name}.crt")
        leaf.private_key_pem.write_to_path(folder / f"{name}.key")
    tls = {
        "certificate": str(folder / "server.crt"),
        "key": str(folder / "server.key"),
        "clientcas": [str(folder / "CA.crt")],
    }
    with servers.registry("docker-registry", tmp_path, tls=tls) as running:
        where = f"{running.host}/team/app"
        plain = desk.ocipack("list", f"oci://{where}")
        plain.expect(3)
        for part in ("the server speaks TLS", f"for {NAME}, valid", "ca: CA.crt"):
            assert part in plain.err
        alone = desk.ocipack("list", f"oci://{where}", "--ca-file", str(folder / "CA.crt"))
        alone.expect(3)
        for part in (f"for {NAME}, valid", f"serverName: {NAME}", "clientCertificate: client.crt"):
            assert part in alone.err
        settings = folder / "registries.yaml"
        settings.write_text(
            "apiVersion: ocipack.dev/v1alpha1\nkind: RegistrySettings\nregistries:\n"
            f"- {{host: '{running.host}', ca: CA.crt, serverName: {NAME},\n"
            "   clientCertificate: client.crt, clientKey: client.key}\n"
        )
        env = {"OCIPACK_REGISTRIES": str(settings)}
        checked = desk.ocipack("registry", "check", where, "--write", **env).expect()
        assert rows(checked)["upload"] == "yes"
        pack = ("ship", str(Path(__file__).parents[2] / "examples/hello"), "--allow-dirty")
        desk.ocipack("keys", "generate", "-o", "alice").expect()
        shipped = desk.ocipack(
            *pack, "--to", f"oci://{where}:v1", "--key", "alice.key", **env
        ).expect()
        assert desk.ocipack("verify", shipped, "--key", "alice.pub", **env).expect() == shipped
        other = trustme.CA().issue_cert("mallory@corp.example")
        other.cert_chain_pems[0].write_to_path(folder / "client.crt")
        other.private_key_pem.write_to_path(folder / "client.key")
        refused = desk.ocipack("list", f"oci://{where}", **env)
        refused.expect(3)
        assert f"does not accept our certificate {folder}/client.crt" in refused.err


@pytest.mark.interop("docker-registry", "refregd", "oras")
def test_scripts_on_oras_py_and_the_oras_command_read_each_other(
    desk: Desk, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(desk.folder)
    Path("theirs.txt").write_text("theirs")
    Path("ours.txt").write_text("ours")
    script = Registry(Registries())
    desk.tool("oras", "push", "--plain-http", f"{repository}:theirs", "theirs.txt").expect()
    (file,) = script.pull(target=f"{repository}:theirs", outdir="out")
    assert Path(file).read_text() == "theirs"
    script.push(target=f"{repository}:ours", files=["ours.txt"], quiet=True)
    desk.tool("oras", "pull", "--plain-http", f"{repository}:ours", "-o", "out").expect()
    assert Path("out/ours.txt").read_text() == "ours"
    assert sorted(script.get_tags(str(repository))) == ["ours", "theirs"]


@pytest.mark.interop("docker-registry")
def test_a_pull_through_cache_stands_for_a_registry_that_cannot_be_reached(
    desk: Desk, tmp_path: Path
) -> None:
    """What has been verified through the mirror once is verified without its origin."""
    for name in ("origin", "cache"):
        (tmp_path / name).mkdir()
    desk.ocipack("keys", "generate", "-o", "alice").expect()
    hello = str(Path(__file__).parents[2] / "examples/hello")
    settings = tmp_path / "registries.yaml"
    with ExitStack() as later:
        with servers.registry("docker-registry", tmp_path / "origin") as origin:
            proxy = {"remoteurl": f"http://{origin.host}"}
            cache = later.enter_context(
                servers.registry("docker-registry", tmp_path / "cache", proxy=proxy)
            )
            settings.write_text(
                "apiVersion: ocipack.dev/v1alpha1\nkind: RegistrySettings\nregistries:\n"
                f"- {{host: '{origin.host}', mirrors: [{{host: '{cache.host}', tags: true}}]}}\n"
            )
            place = f"oci://{origin.host}/team/app:v1"
            ship = ("ship", hello, "--allow-dirty", "--to", place, "--key", "alice.key")
            shipped = desk.ocipack(*ship).expect()
            options = ("--key", "alice.pub", "--registries", str(settings))
            near = desk.ocipack("verify", place, *options, "--debug-http")
            assert near.expect() == shipped
            lines = [line for line in near.err.splitlines() if " ms out=" in line]
            assert lines
            assert not [line for line in lines if f"/{origin.host}/" in line and " 200 " in line]
            desk.ocipack("pull", place, *options, "-o", "first").expect()
            manifest = Repository(origin.host, "team/app").manifest("v1")
            parts = [manifest["config"], *manifest["layers"]]
            _wait_for(tmp_path / "cache/storage", [part["digest"] for part in parts])
        alone = desk.ocipack("verify", place, *options)
        assert alone.expect() == shipped
        desk.ocipack("pull", place, *options, "-o", "second").expect()
        without = desk.ocipack("verify", place, "--key", "alice.pub")
        without.expect(3)
    assert (desk.folder / "second").is_dir()


def _wait_for(storage: Path, digests: list[str]) -> None:
    """Wait until a pull-through cache, which stores while it serves, has stored it all."""
    until = time.monotonic() + 30
    places = [
        storage / "docker/registry/v2/blobs/sha256" / d[7:9] / d[7:] / "data" for d in digests
    ]
    while not all(place.exists() for place in places):
        assert time.monotonic() < until, "the cache does not store what it serves"
        time.sleep(0.01)
