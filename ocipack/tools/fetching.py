"""Files of one commit of a git repository elsewhere, fetched by git and read without a checkout.

1. git speaks https, or plain HTTP where that is allowed for the host, and nothing else: no ssh, no
   files, no program named by an address or a configuration.
2. It has an empty home, no configuration but what is said here, no prompt, no hooks, no helper.
   Credentials are said to it for the very host, and are on no command line.
3. Nothing is checked out: contents are asked for by their ids, so no filter, attribute, link or
   submodule of the repository has any effect. Links and submodules among what is wanted are
   refused.
4. Time, bytes on disk, the number of files and their bytes are bounded.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ocipack.errors import (
    Denied,
    IntegrityError,
    Misuse,
    NotFound,
    Rejected,
    StoreError,
    Unavailable,
)
from ocipack.tree.limits import Limits
from ocipack.tree.tree import shown

TIMEOUT: Final = 300.0
"""Seconds that one question to git may take."""

DISK: Final = 1024 * 1024 * 1024
"""Bytes that git may write: the repository at that commit, without history."""

LISTING: Final = 256 * 1024 * 1024
"""Bytes that git may answer."""

_TICK: Final = 0.05
_WORDS: Final = 300
_KINDS: Final = {"120000": "a symbolic link", "160000": "a submodule"}
_ENTRY: Final = re.compile(rb"(\d{6}) (\w+) ([0-9a-f]{40,64}) +(\d+|-)\t(.+)", re.DOTALL)
_DENIED: Final = ("could not read Username", "Authentication failed", "error: 403", "error: 401")
_ABSENT: Final = ("not found", "error: 404", "couldn't find remote ref", "not our ref")


@dataclass(frozen=True, slots=True)
class Access:
    """How a host is reached: all that git is told of it.

    `authorization` is the value of a header, `proxies` the environment's, `authorities`,
    `certificate` and `key` are files.
    """

    search: str
    authorization: str = field(default="", repr=False)
    proxies: Mapping[str, str] = field(default_factory=dict, repr=False)
    authorities: str = ""
    certificate: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    executable: bool
    identity: str
    size: int


class GitFetch:
    """Fetches from the repository at `address` into `private`, an empty directory that is ours."""

    def __init__(
        self, address: str, private: Path, access: Access, *, timeout: float = TIMEOUT
    ) -> None:
        self._address, self._private, self._timeout = address, private, timeout
        self._environment = _environment(address, private, access)
        self._count = 0
        self._ask("init", "--bare", "--quiet", "--template=", str(private / "repository"))

    def commit(self, ref: str) -> str:
        """The commit that `ref` (a tag, a branch, HEAD, or refs/…) names now.

        NotFound if there is none, Rejected if a tag and a branch of that name differ.
        """
        names = [ref] if ref == "HEAD" or ref.startswith("refs/") else [f"refs/tags/{ref}"]
        names += [] if names == [ref] else [f"refs/heads/{ref}"]
        asked = [name for one in names for name in (one, f"{one}^{{}}")]
        found: dict[str, str] = {}
        for line in (
            self._ask("ls-remote", self._address, *asked).decode(errors="replace").split("\n")
        ):
            identity, _, name = line.partition("\t")
            found[name] = identity
        peeled = {name: found.get(f"{name}^{{}}") or found.get(name) for name in names}
        commits = {identity for identity in peeled.values() if identity}
        if not commits:
            raise NotFound(f"{self._address}: there is no tag or branch {ref!r}")
        if len(commits) > 1:
            raise Rejected(
                f"{self._address}: {ref!r} is a tag and a branch, and they differ",
                hint=f"write refs/tags/{ref} or refs/heads/{ref}",
            )
        return commits.pop()

    def fetch(self, commit: str, ref: str = "") -> None:
        """Fetch `commit` alone; where a server gives none by its id, by `ref`, if that is there.

        IntegrityError if it is no commit.
        """
        try:
            self._fetched(commit)
        except StoreError:
            if not ref:
                raise
            self._fetched(ref)
        real = self._ask("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}", fails="")
        if real.decode().strip() != commit:
            raise IntegrityError(
                f"{self._address}: {commit} could not be had as a commit",
                hint="it may be a tag's own id, or not be at that ref any more",
            )

    def _fetched(self, what: str) -> None:
        flags = ("--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules")
        self._ask("fetch", *flags, "--no-auto-maintenance", self._address, what)

    def files(
        self, commit: str, wanted: Callable[[str], object], limits: Limits
    ) -> Iterator[tuple[str, bool, bytes]]:
        """The files of a commit that are `wanted`: name, whether executable, content.

        Rejected for links and submodules among them, and for more than `limits`.
        """
        entries = list(self._entries(commit, wanted))
        if len(entries) > limits.entries or sum(one.size for one in entries) > limits.tar:
            raise Rejected(
                f"{self._address}: {len(entries)} files, and at most {limits.entries} with "
                f"{limits.tar} bytes are taken",
                hint="choose less of it, with path and include",
            )
        ids = "".join(f"{one.identity}\n" for one in entries).encode()
        data = self._ask("cat-file", "--batch", given=ids, limit=limits.tar + LISTING)
        at = 0
        for one in entries:
            head = f"{one.identity} blob {one.size}\n".encode()
            if data[at : at + len(head)] != head:
                raise Unavailable(f"{self._address}: git does not give {shown(one.name)}")
            at += len(head)
            yield one.name, one.executable, data[at : at + one.size]
            at += one.size + 1

    def _entries(self, commit: str, wanted: Callable[[str], object]) -> Iterator[_Entry]:
        listed = self._ask("ls-tree", "-r", "-z", "-l", "--full-tree", commit)
        for record in listed.split(b"\0"):
            match = _ENTRY.fullmatch(record)
            if match is None:
                continue
            mode, identity = match[1].decode(), match[3].decode()
            name = match[5].decode("utf-8", "surrogateescape")
            if not wanted(name):
                continue
            if mode in _KINDS:  # (3)
                raise Rejected(
                    f"{self._address}: {shown(name)} is {_KINDS[mode]}, which is not taken",
                    hint="choose what is wanted with path, include and exclude",
                )
            yield _Entry(name, mode == "100755", identity, int(match[4]))

    def _ask(
        self, *arguments: str, given: bytes = b"", limit: int = LISTING, fails: str | None = None
    ) -> bytes:
        """Run git to its end; what it says on standard output.

        With `fails` an exit code of 1 is that answer.
        """
        self._count += 1
        names = [self._private / f"{self._count}.{kind}" for kind in ("in", "out", "err")]
        names[0].write_bytes(given)
        command = ["git", "--no-pager", *arguments]
        with names[0].open("rb") as source, names[1].open("wb") as out, names[2].open("wb") as err:
            try:
                process = subprocess.Popen(  # noqa: S603 - fixed words, an address, a ref and ids that were judged
                    command,
                    env=self._environment,
                    cwd=self._private,
                    stdin=source,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                )
            except FileNotFoundError as e:
                raise Misuse("git is not installed", hint="install git, or vendor by url") from e
            self._watch(process, arguments[0])
        said = names[2].read_bytes()[-64 * 1024 :].decode(errors="replace")
        if process.returncode == 1 and fails is not None and not said:
            return fails.encode()
        if process.returncode != 0:
            raise self._failed(arguments[0], said)
        if names[1].stat().st_size > limit:
            raise Rejected(f"{self._address}: git {arguments[0]} answers more than {limit} bytes")
        return names[1].read_bytes()

    def _watch(self, process: subprocess.Popen[bytes], what: str) -> None:
        """Wait for git to end; kill it, and all it has started, when it takes too much (4)."""
        until = time.monotonic() + self._timeout
        try:
            while True:
                ended = False
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_TICK)
                    ended = True
                if _size(self._private) > DISK:
                    raise Rejected(
                        f"{self._address}: more than {DISK} bytes at that commit",
                        hint="vendor the files by url",
                    )
                if ended:
                    return
                if time.monotonic() > until:
                    raise Unavailable(
                        f"{self._address}: git {what} did not end in {self._timeout:g} s"
                    )
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _failed(self, what: str, said: str) -> StoreError:
        lines = [line for line in said.splitlines() if line.startswith(("fatal:", "error:"))]
        first = (lines or said.splitlines() or ["no reason given"])[0]
        words = f"{self._address}: git {what} failed: {first[:_WORDS]!r}"
        if any(text in said for text in _DENIED):
            return Denied(words, hint="`ocipack login HOST` keeps an account for the host")
        if any(text in said for text in _ABSENT):
            return NotFound(words)
        return Unavailable(words)


def _environment(address: str, private: Path, access: Access) -> dict[str, str]:
    """All that git is told (1, 2); Misuse for an address of another kind."""
    parts = urlsplit(address)
    if parts.scheme not in {"https", "http"} or not parts.hostname or "@" in parts.netloc:
        raise Misuse("git is asked by https alone, and without credentials in the address")
    settings = {
        "core.hooksPath": os.devnull,
        "credential.helper": "",
        "gc.auto": "0",
        "http.followRedirects": "initial",
        "protocol.version": "2",
        "submodule.recurse": "false",
        "transfer.credentialsInUrl": "die",
    }
    files = {"sslCAInfo": access.authorities, "sslCert": access.certificate, "sslKey": access.key}
    settings |= {f"http.{name}": path for name, path in files.items() if path}
    if access.authorization:
        origin = f"{parts.scheme}://{parts.netloc}/"
        settings[f"http.{origin}.extraHeader"] = f"Authorization: {access.authorization}"
    pairs = [(f"GIT_CONFIG_KEY_{i}", key) for i, key in enumerate(settings)]
    pairs += [(f"GIT_CONFIG_VALUE_{i}", value) for i, value in enumerate(settings.values())]
    return {
        **access.proxies,
        **dict(pairs),
        "GIT_ALLOW_PROTOCOL": parts.scheme,
        "GIT_ASKPASS": "",
        "GIT_CONFIG_COUNT": str(len(settings)),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_DIR": str(private / "repository"),
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "HOME": str(private),
        "LC_ALL": "C",
        "PATH": access.search,
        "SSH_ASKPASS": "",
        "TMPDIR": str(private),
    }


def _size(directory: Path) -> int:
    total = 0
    for parent, _, names in os.walk(directory):
        for name in names:
            with suppress(OSError):  # git moves its files while we look
                total += os.lstat(os.path.join(parent, name)).st_size  # noqa: PTH118 - as text
    return total
