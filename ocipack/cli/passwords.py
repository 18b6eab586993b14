"""Where the password of a signing key comes from; never from an argument, never by waiting."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ocipack.errors import Misuse

LIMIT = 64 * 1024
"""Bytes of a password that we are ready to read."""

_F = TypeVar("_F", bound=Callable[..., Any])


def password_options(function: _F) -> _F:
    """Add the options that say where the password is."""
    for option in (
        click.option("--password-stdin", is_flag=True, help="Read the password from stdin."),
        click.option(
            "--password-file",
            metavar="FILE",
            help="Read the password from a file, without its final newline. Else from "
            "COSIGN_PASSWORD, else a prompt on a terminal.",
        ),
    ):
        function = option(function)
    return function


def password(
    file: str | None, *, stdin: bool, confirm: bool = False, what: str = "signing key"
) -> bytes:
    """Find the password: the flag's file or standard input, else COSIGN_PASSWORD, else a prompt.

    COSIGN_PASSWORD may be empty: that is a password. A final newline of a file or of standard
    input is not part of it. `confirm` asks twice. Misuse if there is nowhere to ask.
    """
    if file is not None and stdin:
        raise Misuse("--password-file and --password-stdin exclude each other")
    if file is not None:
        return _file(file)
    if stdin:
        return _line(sys.stdin.buffer.read(LIMIT + 1), "standard input")
    said = os.environb.get(b"COSIGN_PASSWORD")
    if said is not None:
        return said
    if not sys.stdin.isatty():
        raise Misuse(
            f"the {what} needs a password, and there is no terminal to ask on",
            hint="set COSIGN_PASSWORD, or give --password-file or --password-stdin",
        )
    return _ask(what, confirm=confirm)


def login_password(*, stdin: bool) -> str:
    """Find the password of an account at a registry: standard input, or a prompt.

    It is not an argument, which every user of the machine can read, nor an environment variable.
    Misuse if there is nowhere to ask, or if it is empty or not UTF-8.
    """
    if stdin:
        found = _line(sys.stdin.buffer.read(LIMIT + 1), "standard input")
    elif sys.stdin.isatty():
        found = _ask("account", confirm=False)
    else:
        raise Misuse(
            "the password is asked for on a terminal, and there is none",
            hint="give it by --password-stdin",
        )
    try:
        text = found.decode()
    except UnicodeDecodeError:
        raise Misuse("the password is not UTF-8") from None
    if not text or not text.isprintable():
        raise Misuse("the password is empty, or holds more than one line")
    return text


def _ask(what: str, *, confirm: bool) -> bytes:
    answer: str = click.prompt(
        f"Password of the {what}",
        hide_input=True,
        default="",
        show_default=False,
        confirmation_prompt=confirm,
        err=True,
    )
    return answer.encode()


def _file(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return _line(file.read(LIMIT + 1), path)
    except OSError as e:
        raise Misuse(f"{path}: cannot be read: {e.strerror}") from e


def _line(data: bytes, where: str) -> bytes:
    if len(data) > LIMIT:
        raise Misuse(f"{where}: more than {LIMIT} bytes, so it is no password")
    return data.removesuffix(b"\n").removesuffix(b"\r")
