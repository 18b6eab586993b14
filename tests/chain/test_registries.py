"""Commands and how they reach registries: the settings file, `registry check`, `--metrics`."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme
from content import artifact
from registry import Fault, Registry, Switches

from ocipack.cli.registries import Connections
from ocipack.errors import Rejected
from ocipack.oci.reference import Reference
from ocipack.stores.registry.registries import Registries

Run = Callable[..., tuple[int, str, str]]
NAME = "registry.corp.example"
SECRET = "s3cr3t-password"

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def server() -> Iterator[Registry]:
    with Registry() as running:
        yield running


def fill(server: Registry, name: str = "team/app") -> str:
    """Put an artifact under v1; its digest."""
    store = Registries().store(Reference.parse(f"{server.name}/{name}"), writes=True)
    made = artifact(b"some layer")
    for child in made.manifest.children:
        store.push(child, made)
    store.push(made.root, made)
    store.tag(made.root, "v1")
    server.requests.clear()
    return str(made.root.digest)


def log_in(home: Path, registry: str, user: str = "user", password: str = "pass") -> None:
    file = home / ".docker/config.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"auths": {registry: {"username": user, "password": password}}}))


# the settings file


def test_a_registry_behind_everything_is_reached_by_one_file_and_the_message_leads_to_it(
    ocipack: Run, home: Path
) -> None:
    """Private CA, an address, another server name, a client certificate: as the hint says it.

    What is written is the hint, to the letter, and what whoever runs the registry hands out.
    """
    authority = trustme.CA(organization_name="Corp")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(NAME).configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    folder = home / ".config/ocipack"
    folder.mkdir(parents=True)
    authority.cert_pem.write_to_path(folder / "CA.crt")
    ours = authority.issue_cert("deployer@corp.example")
    ours.cert_chain_pems[0].write_to_path(folder / "client.crt")
    ours.private_key_pem.write_to_path(folder / "client.key")
    with Registry(tls=context) as server:
        server.repository("team/app").tags = {"v1": "sha256:" + "0" * 64}
        where = f"oci://{server.name}/team/app"
        code, _, err = ocipack("list", where)
        assert code == 3
        assert "asked by plain HTTP, and the server speaks TLS" in err
        obey(err, folder / "registries.yaml")
        assert ocipack("list", where) == (0, "v1\n", "")
        code, out, _ = ocipack("registry", "check", server.name)
        assert code == 0
        assert re.search(rf"connection +yes +TLSv1\.3: O.*, issued by .*O=Corp, for {NAME}, ", out)


def obey(said: str, file: Path) -> None:
    """Do what a hint says, to the letter, knowing nothing else."""
    hint = said.split("hint: ")[1].split("; ", maxsplit=1)[0]
    assert hint.startswith(f"write into {file}: ")
    file.write_text(hint.removeprefix(f"write into {file}: "))


@pytest.mark.parametrize("how", ["option", "environment", "home", "config"])
def test_where_the_file_is_looked_for(
    ocipack: Run,
    server: Registry,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
) -> None:
    file = tmp_path / "other.yaml"
    options: list[str] = []
    if how == "option":
        monkeypatch.setenv("OCIPACK_REGISTRIES", "/nowhere")
        options = ["--registries", str(file)]
    elif how == "environment":
        monkeypatch.setenv("OCIPACK_REGISTRIES", str(file))
    else:
        config = home / ".config" if how == "home" else tmp_path / "config"
        file = config / "ocipack/registries.yaml"
        file.parent.mkdir(parents=True)
        if how == "config":
            monkeypatch.setenv("XDG_CONFIG_HOME", str(config))
    fill(server)
    file.write_text(
        "apiVersion: ocipack.dev/v1alpha1\nkind: RegistrySettings\nregistries:\n"
        f"- {{host: {NAME}, plainHTTP: true, connect: '{server.name}'}}\n"
    )
    assert ocipack("list", f"oci://{NAME}/team/app", *options)[:2] == (0, "v1\n")
    assert server.requests[0].headers["host"] == NAME


def test_a_file_that_is_wrong_ends_the_run_and_one_that_is_named_must_be_there(
    ocipack: Run, server: Registry, home: Path
) -> None:
    code, _, err = ocipack("list", f"oci://{server.name}/a", "--registries", "missing.yaml")
    assert (code, "missing.yaml: cannot be read" in err) == (2, True)
    file = home / ".config/ocipack/registries.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("apiVersion: ocipack.dev/v1alpha1\nkind: RegistrySettings\nregistry: []\n")
    code, _, err = ocipack("list", f"oci://{server.name}/a")
    assert (code, f"{file}:3:1: unknown field 'registry'" in err) == (2, True)
    assert "did you mean registries?" in err
    assert not server.requests


def test_a_token_service_elsewhere_is_allowed_by_the_file(
    ocipack: Run, home: Path, tmp_path: Path
) -> None:
    with Registry(host="127.0.0.2") as tokens:
        switches = Switches(auth="bearer", realm=f"{tokens.url}/token")
        with Registry(switches, tokens=tokens.tokens) as server:
            fill_with = (tmp_path / "r.yaml", tmp_path / "s.yaml")
            server.switches.auth = ""
            fill(server)
            server.switches.auth = "bearer"
            log_in(home, server.name)
            where = f"oci://{server.name}/team/app"
            code, _, err = ocipack("list", where)
            assert code == 3
            assert not tokens.requests
            usual = home / ".config/ocipack/registries.yaml"
            assert f"list it under realms of {server.name} in {usual}" in err
            fill_with[0].write_text(
                "apiVersion: ocipack.dev/v1alpha1\nkind: RegistrySettings\nregistries:\n"
                f"- {{host: '{server.name}', realms: ['{tokens.name}']}}\n"
            )
            assert ocipack("list", where, "--registries", str(fill_with[0]))[:2] == (0, "v1\n")


def test_mirrors_are_read_by_commands(ocipack: Run, server: Registry, tmp_path: Path) -> None:
    with Registry() as mirror:
        digest = fill(server)
        fill(mirror, "hub/team/app")
        file = tmp_path / "r.yaml"
        file.write_text(
            "apiVersion: ocipack.dev/v1alpha1\nkind: RegistrySettings\nregistries:\n"
            f"- {{host: '{server.name}', mirrors: ['{mirror.name}/hub']}}\n"
        )
        place = f"oci://{server.name}/team/app@{digest}"
        code, out, _ = ocipack(
            "copy", place, "ocidir://site", "--no-signatures", "--registries", str(file)
        )
        assert (code, digest in out) == (0, True)
        assert not server.requests
        assert {line.split("/")[-2] for line in mirror.lines()} == {"manifests", "blobs"}


def test_mirrors_of_allowed_registries_are_allowed_and_stand_for_no_other(
    server: Registry, tmp_path: Path
) -> None:
    """A list of a project says which registries; whose mirrors are asked is the user's affair."""
    with Registry() as mirror:
        digest = fill(server)
        fill(mirror)
        file = tmp_path / "r.yaml"
        file.write_text(
            "apiVersion: ocipack.dev/v1alpha1\nkind: RegistrySettings\nregistries:\n"
            f"- {{host: '{server.name}', mirrors: ['{mirror.name}']}}\n"
        )
        reference = Reference.parse(f"{server.name}/team/app")
        for allowed, good in ((server.name, True), ("registry.example", False)):
            connections = Connections(settings_file=str(file))
            connections.confine((allowed,))
            if good:
                store = connections.store(reference, write=False)
                assert str(store.resolve(digest).digest) == digest
            else:
                with pytest.raises(Rejected, match="may contact"):
                    connections.store(reference, write=False)
        assert len(mirror.requests) == 1
        assert not server.requests
        mirrored = Reference.parse(f"{mirror.name}/team/app")
        for allowed in (server.name, "registry.example"):  # by its own name it is not listed
            connections = Connections(settings_file=str(file))
            connections.confine((allowed,))
            for write in (True, False):
                with pytest.raises(Rejected, match="may contact"):
                    connections.store(mirrored, write=write).resolve(digest)
        assert len(mirror.requests) == 1


# registry check


def rows(out: str) -> dict[str, tuple[str, str]]:
    found = (line.split(maxsplit=2) for line in out.splitlines())
    return {name: (outcome, detail) for name, outcome, detail in found}


def test_a_check_changes_nothing(ocipack: Run, server: Registry) -> None:
    digest = fill(server)
    code, out, _ = ocipack("registry", "check", f"{server.name}/team/app")
    assert code == 0
    assert rows(out) == {
        "connection": ("yes", "plain HTTP"),
        "api": ("yes", "version not said"),
        "auth": ("yes", "it asks for none"),
        "tags": ("yes", "1 tag"),
        "head": ("yes", f"v1 is {digest}"),
        "ranges": ("yes", "a download that is cut goes on where it was"),
        "referrers": ("yes", "listed by the API"),
    }
    assert {seen.method for seen in server.requests} == {"GET", "HEAD"}


def test_a_check_of_a_host_alone_asks_for_the_api_alone(ocipack: Run, server: Registry) -> None:
    code, out, _ = ocipack("registry", "check", server.name)
    assert code == 0
    assert list(rows(out)) == ["connection", "api", "auth"]
    assert server.lines() == ["GET /v2/"]


def test_a_check_as_json(ocipack: Run, server: Registry) -> None:
    server.switches.referrers = False
    fill(server)
    code, out, _ = ocipack("registry", "check", f"{server.name}/team/app", "--output", "json")
    document = json.loads(out)
    assert code == document["exitCode"] == 0
    assert document["registry"] == server.name
    assert document["repository"] == "team/app"
    found = {one["name"]: one for one in document["checks"]}
    assert found["api"] == {
        "name": "api",
        "outcome": "yes",
        "detail": "version not said",
        "needed": True,
    }
    assert found["referrers"]["outcome"] == "no"
    assert "sha256-<hex>" in found["referrers"]["detail"]


def test_a_check_with_writing_leaves_no_tag(ocipack: Run, server: Registry) -> None:
    server.repository("team/app")
    before = fill(server)
    code, out, err = ocipack("registry", "check", f"{server.name}/team/app", "--write")
    assert code == 0, err
    found = rows(out)
    assert {name for name, (outcome, _) in found.items() if outcome == "yes"} >= {
        *("connection", "api", "auth", "tags", "head", "ranges", "referrers"),
        *("upload", "chunked", "mount", "manifest", "subject"),
    }
    assert server.repository("team/app").tags == {"v1": before}
    written = {name for name in server.repositories if name != "team/app"}
    assert written == {"team/app/ocipack-check", "team/app/ocipack-check-mount"}
    assert not any(server.repository(name).tags for name in written)
    puts = server.lines("PUT .*/manifests/")
    assert len(puts) == 2
    assert all("/manifests/sha256:" in line for line in puts)
    assert {line.partition(" ")[2] for line in puts} == {
        line.partition(" ")[2] for line in server.lines("DELETE .*/manifests/")
    }


def test_what_cannot_be_deleted_is_said(ocipack: Run, server: Registry) -> None:
    body = b'{"errors":[{"code":"UNSUPPORTED","message":"the operation is unsupported"}]}'
    server.switches.faults = [Fault("^DELETE", 405, body=body)]
    code, out, _ = ocipack("registry", "check", f"{server.name}/team/app", "--write")
    assert code == 0
    outcome, detail = rows(out)["delete"]
    assert outcome == "no"
    assert detail.startswith("405 UNSUPPORTED: the operation is unsupported; ")
    assert detail.endswith("2 manifests without a tag are left in team/app/ocipack-check")


def test_a_check_that_is_cut_short_cleans_up(ocipack: Run, server: Registry) -> None:
    server.switches.faults = [Fault("^GET .*/referrers/", act="reset", skip=1)]
    code, out, _ = ocipack("registry", "check", f"{server.name}/team/app", "--write")
    assert code == 0
    assert rows(out)["subject"][0] == "unknown"
    assert len(server.lines("DELETE .*/manifests/")) == 2


def test_no_fallback_tag_is_written_where_there_is_no_api(ocipack: Run, server: Registry) -> None:
    server.switches.referrers = False
    code, out, _ = ocipack("registry", "check", f"{server.name}/team/app", "--write")
    assert code == 0
    assert "subject" not in rows(out)
    assert not any(repository.tags for repository in server.repositories.values())


def test_what_uploads_meet(ocipack: Run, server: Registry) -> None:
    server.switches.mount = False
    server.switches.mount_status = 401
    server.switches.faults = [Fault("^PATCH", 416), Fault("^PUT .*manifests", 403)]
    code, out, _ = ocipack("registry", "check", f"{server.name}/team/app", "--write")
    found = rows(out)
    assert code == 3
    assert found["chunked"][0] == "no"
    assert found["mount"][0] == "no"
    assert found["manifest"] == ("no", "403")
    assert "delete" not in found


@pytest.mark.parametrize(
    ("switches", "row", "outcome", "detail"),
    [
        (Switches(head=False), "head", "no", "HEAD of v1 does not say digest, size and type"),
        (Switches(ranges="no"), "ranges", "no", "begins anew"),
        (Switches(faults=[Fault("GET .*/blobs/", 403)]), "ranges", "no", "403"),
        (Switches(faults=[Fault("GET .*/referrers/", 403)]), "referrers", "no", "403"),
        (Switches(faults=[Fault("GET .*/referrers/", 503)]), "referrers", "unknown", "503"),
        (Switches(referrers_type="text/html"), "referrers", "no", "no API (text/html)"),
        (Switches(faults=[Fault("GET .*/tags/", 200, body=b"[]")]), "tags", "no", "tags/list"),
        (Switches(faults=[Fault("GET .*/tags/", 403)]), "tags", "no", "403"),
        (Switches(page=1), "tags", "yes", "1 tag on the first page"),
        (Switches(whole=False), "single-post", "no", "it opens an upload instead"),
        (Switches(chunk_min=5000), "chunked", "yes", "to team/app/ocipack-check"),
        (Switches(patch_status=201), "chunked", "yes", "to team/app/ocipack-check"),
        (Switches(patch=False), "chunked", "no", "405"),
        (Switches(mount=False), "mount", "no", "every blob is sent"),
        (Switches(subject_header=False), "subject", "yes", "OCI-Subject not said"),
        (Switches(moving=True), "upload", "yes", "to team/app/ocipack-check"),
        (Switches(faults=[Fault("PUT .*uploads", 500)]), "upload", "unknown", "500"),
        (Switches(location="none"), "upload", "unknown", "did not say where"),
    ],
)
def test_what_is_found_out(
    ocipack: Run, switches: Switches, row: str, outcome: str, detail: str
) -> None:
    with Registry() as server:
        fill(server)
        server.repository("team/app").tags["v2"] = server.repository("team/app").tags["v1"]
        server.switches = switches
        code, out, err = ocipack("registry", "check", f"{server.name}/team/app", "--write")
    found = rows(out)[row]
    assert (found[0], detail in found[1]) == (outcome, True), out
    needed = row in ("upload", "manifest") or (row == "tags" and "403" in detail)
    assert code == (3 if needed and outcome != "yes" else 0), err
    assert "bug" not in err


@pytest.mark.parametrize("status", [401, 403])
def test_a_registry_that_lets_us_read_alone(
    ocipack: Run, server: Registry, home: Path, status: int
) -> None:
    fill(server)
    log_in(home, server.name)
    server.switches.faults = [Fault("^POST", status, body=b'{"errors":[{"code":"DENIED"}]}')]
    code, out, err = ocipack("registry", "check", f"{server.name}/team/app", "--write")
    assert code == 3
    assert rows(out)["upload"] == ("no", f"{status} DENIED")
    assert "upload: " in err
    assert "single-post" not in rows(out)


def test_a_repository_that_is_not_made_by_pushing(ocipack: Run, server: Registry) -> None:
    body = b'{"errors":[{"code":"NAME_UNKNOWN","message":"no such repository"}]}'
    server.switches.faults = [Fault("^POST", 404, body=body)]
    code, out, _ = ocipack("registry", "check", f"{server.name}/team/app", "--write")
    assert code == 3
    assert rows(out)["upload"] == ("no", "404 NAME_UNKNOWN: no such repository")


@pytest.mark.parametrize("auth", ["basic", "bearer"])
def test_whose_credentials_are_tried(ocipack: Run, server: Registry, home: Path, auth: str) -> None:
    fill(server)
    server.switches.auth = auth
    server.switches.users = {"user": SECRET}
    server.switches.anonymous = ""
    code, out, _ = ocipack("registry", "check", f"{server.name}/team/app")
    assert code == 3
    assert "anonymous; nothing for" in out
    log_in(home, server.name, password=SECRET)
    code, out, err = ocipack("registry", "check", f"{server.name}/team/app", "--write")
    assert code == 0, out
    asked = "a password" if auth == "basic" else f"a token from {server.url}/token"
    assert rows(out)["auth"] == ("yes", f"{asked}; credentials: {home}/.docker/config.json")
    assert SECRET not in out + err
    log_in(home, server.name, password=f"{SECRET}-wrong")
    code, out, err = ocipack("registry", "check", f"{server.name}/team/app")
    assert code == 3
    assert rows(out)["auth"][0] == "no"
    assert "401 UNAUTHORIZED" in rows(out)["auth"][1]
    assert SECRET not in out + err


@pytest.mark.parametrize(
    ("status", "kind", "body", "name"),
    [
        (404, "text/html", b"<html>not here</html>", "api"),
        (200, "text/html", b"<!doctype html><title>Log in</title>", "api"),
        (403, "application/json", b'{"errors":[{"code":"DENIED"}]}', "auth"),
        (502, "text/html", b"<html>bad gateway</html>", "api"),
    ],
)
def test_what_is_no_registry(
    ocipack: Run, server: Registry, status: int, kind: str, body: bytes, name: str
) -> None:
    server.switches.faults = [Fault("", status, {"Content-Type": kind}, body)]
    code, out, _ = ocipack("registry", "check", server.name)
    assert code == 3
    assert list(rows(out))[-1] == name
    assert rows(out)[name][0] in ("no", "unknown")


def test_a_registry_that_is_not_there(ocipack: Run) -> None:
    code, out, err = ocipack("registry", "check", "127.0.0.1:9")
    assert code == 3
    assert rows(out)["connection"][0] == "no"
    assert "check the name and port of the registry" in err


@pytest.mark.parametrize(
    ("tail", "options", "words"),
    [
        ("", ("--write",), "--write needs a repository"),
        ("/Team", (), "not a reference"),
        ("/team:v1", (), "without tag and digest"),
        ("/", (), "not a reference"),
    ],
)
def test_what_cannot_be_checked(
    ocipack: Run, server: Registry, tail: str, options: tuple[str, ...], words: str
) -> None:
    code, _, err = ocipack("registry", "check", server.name + tail, *options)
    assert (code, words in err) == (2, True), err
    assert not server.requests


@pytest.mark.parametrize("text", ["https://r.example/x", "user@r.example", "r.example:x"])
def test_what_is_no_host(ocipack: Run, text: str) -> None:
    code, _, err = ocipack("registry", "check", text)
    assert code == 2
    assert err.startswith("error: not a re")
