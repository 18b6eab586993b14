"""What whoever has read nothing is told: one hint, and following it leads on."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from content import artifact
from registry import Registry

from ocipack.oci.reference import Reference
from ocipack.stores.registry.registries import Registries

Run = Callable[..., tuple[int, str, str]]

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def server() -> Iterator[Registry]:
    with Registry() as running:
        yield running


def fill(server: Registry, tag: str = "v1") -> str:
    """Put an artifact there; its place without a tag."""
    store = Registries().store(Reference.parse(f"{server.name}/team/app"), writes=True)
    made = artifact(b"some layer")
    for child in made.manifest.children:
        store.push(child, made)
    store.push(made.root, made)
    store.tag(made.root, tag)
    return f"oci://{server.name}/team/app"


@pytest.fixture
def other(tmp_path: Path, ocipack: Run) -> str:
    """The public key of somebody else."""
    assert ocipack("keys", "generate", "-o", str(tmp_path / "other"))[0] == 0
    return str(tmp_path / "other.pub")


# what is not there


@pytest.mark.parametrize("command", [("inspect",), ("verify", "--key"), ("copy",)])
def test_a_tag_that_is_not_there(
    ocipack: Run, server: Registry, public: str, tmp_path: Path, command: tuple[str, ...]
) -> None:
    where = fill(server)
    first = [public] if command[0] == "verify" else []
    last = [f"ocidir://{tmp_path}/copy"] if command[0] == "copy" else []
    for tag, lead in ((":v9", ""), ("", "no tag means latest; ")):
        code, _, err = ocipack(*command, *first, where + tag, *last)
        assert code == 3
        assert f"hint: {lead}`ocipack list {where}` shows its tags" in err
    assert ocipack("list", where) == (0, "v1\n", "")


def test_a_repository_that_is_not_there(ocipack: Run, server: Registry) -> None:
    code, _, err = ocipack("list", f"oci://{server.name}/team")
    assert code == 3
    assert "NAME_UNKNOWN" in err
    assert "\nhint: there is no such repository there, or this account may not see it\n" in err


def test_a_layout_shows_tags_of_artifacts_before_those_of_signatures(
    ocipack: Run, server: Registry, tmp_path: Path
) -> None:
    where, layout = fill(server), f"ocidir://{tmp_path}/layout"
    assert ocipack("copy", f"{where}:v1", f"{layout}:v1", "--allow-unsigned")[0] == 0
    assert ocipack("tag", f"{layout}:v1", "sha256-aa", "--allow-unsigned")[0] == 0
    assert re.search(
        r"\nhint: it has v1, v1-\w+, sha256-aa, ", ocipack("inspect", f"{layout}:v9")[2]
    )


def test_a_port_where_nothing_listens(ocipack: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    code, _, err = ocipack("list", f"oci://127.0.0.1:{port}/a")
    assert code == 3
    assert "the name and port of the registry" in err


# signatures of others


def test_whose_key_is_trusted_and_whose_signed(
    ocipack: Run, server: Registry, key: str, public: str, other: str
) -> None:
    where = f"{fill(server)}:v1"
    assert ocipack("sign", where, "--key", key)[0] == 0
    good = ocipack("verify", where, "--key", public, "--explain")[2]
    (signer,) = set(re.findall("key ([0-9a-f]{64})", good))
    for explain in ((), ("--explain",)):
        code, _, err = ocipack("verify", where, "--key", other, *explain)
        assert code == 1
        assert f"no trusted key made this signature; it names the key {signer}" in err
        (trusted,) = set(re.findall(r"\(trusted: ([0-9a-f]{64})\)", err))
        assert trusted != signer
        assert err.count("hint: ") == 1, "one hint, once"
        assert "--explain" not in err, "it would show no more"


# archives


@pytest.fixture
def archive(ocipack: Run, server: Registry, key: str, public: str, tmp_path: Path) -> Path:
    where = f"{fill(server)}:v1"
    assert ocipack("sign", where, "--key", key)[0] == 0
    assert ocipack("airgap", "save", where, "--key", public, "-o", str(tmp_path / "a.tar"))[0] == 0
    return tmp_path / "a.tar"


def test_an_archive_that_is_damaged(ocipack: Run, archive: Path, public: str) -> None:
    data = archive.read_bytes()
    at = data.index(b'"schemaVersion":2,"mediaType"')
    for changed, words in ((b"!", "not JSON at line 1, column 2"), (b"\xff", "not UTF-8")):
        archive.write_bytes(data[:at] + changed + data[at + 1 :])
        for command in (
            ("airgap", "verify", str(archive), "--key", public),
            ("verify", f"ocidir://{archive}:v1", "--key", public),
        ):
            code, _, err = ocipack(*command)
            assert code == 1
            assert f"index.json: {words}" in err
            assert "damaged or cut: compare it with what it was copied from\n" in err


@pytest.mark.parametrize("command", [("verify",), ("load", "--to", "oci://127.0.0.1:1/x")])
def test_an_archive_is_not_read_in_vain(
    ocipack: Run, archive: Path, command: tuple[str, ...]
) -> None:
    code, _, err = ocipack("airgap", command[0], str(archive), *command[1:])
    assert code == 2
    assert err.startswith("error: neither --key nor --policy says who must have signed\n")


def test_an_archive_is_no_layout_with_tags(ocipack: Run, archive: Path, public: str) -> None:
    code, _, err = ocipack("verify", f"ocidir://{archive}:v1", "--key", public)
    assert code == 3
    hint = f"ocipack airgap list {archive}"
    assert f"see `{hint}`" in err
    assert ocipack(*hint.split()[1:])[0] == 0


# commands


def test_a_list_is_of_all_tags(ocipack: Run, server: Registry) -> None:
    where = fill(server)
    for named in (f"{where}:v1", f"{where}@sha256:{'0' * 64}"):
        code, _, err = ocipack("list", named)
        assert code == 2
        assert f"error: {named}: all tags are listed, not one\nhint: write {where}, or" in err
    assert not server.lines("tags/list")


def test_a_rule_is_no_command(ocipack: Run) -> None:
    code, _, err = ocipack("rules", "image-digest")
    assert code == 2
    assert "hint: did you mean `ocipack rules explain image-digest`?" in err
    assert ocipack("rules", "explain", "image-digest")[0] == 0
    assert "No such command 'nothing'" in ocipack("rules", "nothing")[2]
