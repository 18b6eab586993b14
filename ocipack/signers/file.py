"""Key files: `cosign.key` (encrypted, 0600) and `cosign.pub` (0644), as cosign keeps them."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from ocipack.errors import Misuse, Unavailable
from ocipack.report import Finding, Severity
from ocipack.trust.keys import PrivateKey, PublicKey

LIMIT = 64 * 1024
"""Bytes of a key file that we are ready to read; real ones have less than two thousand."""


def read_public(path: str) -> PublicKey:
    """Read a public key; Misuse, naming the file, if it is none."""
    data = _read(path)
    try:
        return PublicKey.parse(data)
    except Misuse as e:
        raise Misuse(f"{path}: {e}", hint=e.hint) from e


def read_private(path: str, password: Callable[[], bytes]) -> PrivateKey:
    """Open an encrypted key file; `password` is asked only once the file has been read.

    Misuse, naming the file, if it is none or the password does not open it.
    """
    data = _read(path)
    try:
        PrivateKey.sealed(data)
        return PrivateKey.open(data, password())
    except Misuse as e:
        raise Misuse(f"{path}: {e}", hint=e.hint) from e


def read_plain(path: str) -> PrivateKey:
    """Read an unencrypted private key that is to be imported; Misuse, naming the file."""
    data = _read(path)
    try:
        return PrivateKey.load(data)
    except Misuse as e:
        raise Misuse(f"{path}: {e}", hint=e.hint) from e


def exposed(path: str) -> Finding | None:
    """Warn if others than its owner can read the private key at `path`."""
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return None
    if not stat.S_ISREG(mode) or not mode & (stat.S_IRWXG | stat.S_IRWXO):
        return None
    return Finding(
        "key-exposed",
        f"others can read or write this private key (mode {stat.S_IMODE(mode):04o})",
        Severity.WARNING,
        file=path,
        hint=f"chmod 600 {path}",
    )


def write_pair(stem: str, sealed: bytes, public: PublicKey, *, force: bool = False) -> None:
    """Write `<stem>.key` and `<stem>.pub`, both or neither.

    An existing file is Misuse, unless `force` replaces it; a place that cannot be written is
    Unavailable. Names are created exclusively, so a link planted there is never followed.
    """
    wanted = ((f"{stem}.key", sealed, 0o600), (f"{stem}.pub", public.pem, 0o644))
    made: list[str] = []
    try:
        for path, data, mode in wanted:
            fresh = f"{path}.new" if force else path
            if force:
                _remove([fresh])  # what a killed run left
            _create(fresh, data, mode)
            made.append(fresh)
        if force:
            for path, _, _ in wanted:
                Path(f"{path}.new").replace(path)
    except FileExistsError as e:
        _remove(made)
        raise Misuse(
            f"{e.filename} exists already",
            hint="a lost private key cannot be made again; --force replaces it",
        ) from e
    except OSError as e:
        _remove(made)
        raise Unavailable(f"{e.filename or stem}: cannot be written: {e.strerror}") from e


def _create(path: str, data: bytes, mode: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        _remove([path])
        raise


def _remove(paths: list[str]) -> None:
    for path in paths:
        Path(path).unlink(missing_ok=True)


def _read(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            data = file.read(LIMIT + 1)
    except OSError as e:
        raise Misuse(f"{path}: cannot be read: {e.strerror}") from e
    if len(data) > LIMIT:
        raise Misuse(f"{path}: more than {LIMIT} bytes, so it is no key")
    return data
