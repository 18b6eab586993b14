"""Key files on a real disk."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from world import key

from ocipack.errors import Misuse, Unavailable
from ocipack.signers import file
from ocipack.trust.keys import PrivateKey

ALICE = key("alice")
SEALED = ALICE.seal(b"pw", os.urandom)


def never() -> bytes:
    raise AssertionError("the password was asked for")


def test_a_pair_is_written_and_read(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        file.write_pair(str(tmp_path / "cosign"), SEALED, ALICE.public)
    finally:
        os.umask(before)
    assert file.read_public(str(tmp_path / "cosign.pub")) == ALICE.public
    found = file.read_private(str(tmp_path / "cosign.key"), lambda: b"pw")
    assert found.public == ALICE.public
    assert (tmp_path / "cosign.key").read_bytes() == SEALED


def test_what_a_killed_run_left_does_not_stand_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "cosign.key.new").write_bytes(b"half")
    file.write_pair(str(tmp_path / "cosign"), SEALED, ALICE.public, force=True)
    assert (tmp_path / "cosign.key").read_bytes() == SEALED
    assert not (tmp_path / "cosign.key.new").exists()


def test_modes(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        file.write_pair(str(tmp_path / "cosign"), SEALED, ALICE.public)
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / n).stat().st_mode) for n in ("cosign.key", "cosign.pub")]
    assert modes == [0o600, 0o644]
    assert file.exposed(str(tmp_path / "cosign.key")) is None
    (tmp_path / "cosign.key").chmod(0o640)
    warning = file.exposed(str(tmp_path / "cosign.key"))
    assert warning is not None
    assert (warning.rule, warning.severity.value) == ("key-exposed", "warning")
    assert "0640" in warning.message
    assert file.exposed("/dev/null") is None
    assert file.exposed(str(tmp_path / "absent")) is None


@pytest.mark.parametrize("there", ["cosign.key", "cosign.pub"])
def test_nothing_is_overwritten(tmp_path: Path, there: str) -> None:
    (tmp_path / there).write_bytes(b"mine")
    with pytest.raises(Misuse, match=f"{there} exists already") as caught:
        file.write_pair(str(tmp_path / "cosign"), SEALED, ALICE.public)
    assert "--force" in caught.value.hint
    assert [path.name for path in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_bytes() == b"mine"
    file.write_pair(str(tmp_path / "cosign"), SEALED, ALICE.public, force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cosign.key", "cosign.pub"]
    assert (tmp_path / "cosign.key").read_bytes() == SEALED
    assert stat.S_IMODE((tmp_path / "cosign.key").stat().st_mode) == 0o600


def test_links_are_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    (tmp_path / "cosign.key").symlink_to(victim)
    with pytest.raises(Misuse):
        file.write_pair(str(tmp_path / "cosign"), SEALED, ALICE.public)
    file.write_pair(str(tmp_path / "cosign"), SEALED, ALICE.public, force=True)
    assert not victim.exists()
    assert not (tmp_path / "cosign.key").is_symlink()


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Unavailable, match="No space left"):
        file.write_pair(str(tmp_path / "cosign"), SEALED, ALICE.public)
    assert not list(tmp_path.iterdir())


def test_a_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="No such file"):
        file.write_pair(str(tmp_path / "no" / "cosign"), SEALED, ALICE.public)


def test_errors_name_the_file_and_come_before_the_password(tmp_path: Path) -> None:
    public, private = tmp_path / "a.pub", tmp_path / "a.key"
    public.write_bytes(ALICE.public.pem)
    private.write_bytes(SEALED)
    with pytest.raises(Misuse, match=r"a\.pub: a public key was given"):
        file.read_private(str(public), never)
    with pytest.raises(Misuse, match=r"a\.key: a private key was given"):
        file.read_public(str(private))
    with pytest.raises(Misuse, match=r"a\.key: the password does not open"):
        file.read_private(str(private), lambda: b"wrong")
    with pytest.raises(Misuse, match=r"a\.key: .*encrypted form already"):
        file.read_plain(str(private))
    for path in ("absent.key", ""):
        with pytest.raises(Misuse, match="cannot be read"):
            file.read_private(str(tmp_path / path), never)


def test_endless_files_end() -> None:
    with pytest.raises(Misuse, match="more than 65536 bytes"):
        file.read_public("/dev/zero")


def test_plain_keys_are_read_for_import(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - here alone
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - here alone
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    data = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    (tmp_path / "plain.pem").write_bytes(data)
    found = file.read_plain(str(tmp_path / "plain.pem"))
    assert found.public == PrivateKey.load(data).public
