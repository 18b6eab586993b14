"""What git knows about a directory, asked without letting the repository or the caller interfere.

No hook, pager, prompt, editor, file system monitor or network runs; of the caller's environment
only what finds git and its configuration gets through, and no GIT_* but where to stop looking.
Remotes are read as configured: `insteadOf` may put a token into them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from ocipack.errors import Denied, Rejected, Unavailable
from ocipack.flux.origin import Checkout
from ocipack.report import Finding, Report, Severity

TIMEOUT = 60.0
"""Seconds that one question may take; a status over a cold file system is the slow one."""

_PASSED = ("PATH", "HOME", "XDG_CONFIG_HOME", "GIT_CEILING_DIRECTORIES")
_FIXED = {
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
    "TZ": "UTC",
}
_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0")
_STATUS = (
    *("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all"),
    *("--ignored=traditional", "--ignore-submodules=none", "--", "."),
)


@dataclass(frozen=True, slots=True)
class Found:
    """A checkout, or None and the reason why as a warning."""

    checkout: Checkout | None
    report: Report


def look(
    directory: str,
    *,
    environment: Mapping[str, str],
    timeout: float = TIMEOUT,
    ready: Callable[[], object] = bool,
) -> Found:
    """Say which commit `directory` shows, and what in it differs from that.

    Files are compared with the commit once `ready` returns; all else is asked before.
    `.git` may be above `directory`. Without git, outside of a repository, in a bare one or before
    the first commit there is no checkout. Denied if git refuses to read the repository because
    someone else owns it; Rejected if the repository is part of the tree; Unavailable if git fails
    otherwise or takes longer than `timeout` seconds.
    """
    if not _perhaps_inside(directory):
        return _nothing("not a git work tree")
    git = _Git(directory, _environment(environment), timeout)
    with ExitStack() as running:
        ask = partial(_asking, running, git)
        try:
            inside = ask("rev-parse", "--is-inside-work-tree", "--show-prefix", none=_OUTSIDE)
        except FileNotFoundError:
            return _nothing("git is not installed")
        place = ask("rev-parse", "--absolute-git-dir", none=_OUTSIDE)
        born = ask("rev-parse", "--verify", "--quiet", "HEAD", none=_OUTSIDE, empty=True)
        within, _, prefix = inside().partition("\n")
        if within != "true":
            return _nothing("not a git work tree")
        # what follows may run what the configuration of the repository names
        _refuse_embedded(directory, place().removesuffix("\n"))
        if not born():
            return _nothing("the repository has no commit")
        return Found(_checkout(ask, prefix.removesuffix("\n"), ready), Report())


_Answer = Callable[[], str]


def _checkout(ask: Callable[..., _Answer], prefix: str, ready: Callable[[], object]) -> Checkout:
    commit = ask("rev-list", "--timestamp", "--max-count=1", "HEAD", "--")
    branch = ask("symbolic-ref", "--quiet", "--short", "HEAD", empty=True)
    tag = ask("describe", "--tags", "--exact-match", "HEAD", none=_UNTAGGED)
    remotes = ask("config", "--null", "--get-regexp", r"^remote\..*\.url$", empty=True)
    time, name = commit().split()
    ready()
    status = ask(*_STATUS)
    return Checkout(
        name,
        int(time),
        branch=branch().strip(),
        tag=tag().strip(),
        remote=_remote(remotes()),
        changed=_changed(status(), prefix),
    )


def _perhaps_inside(directory: str) -> bool:
    """Whether git could find a repository at or above `directory`: it needs one of two names.

    Those are `.git`, and in a bare repository `HEAD`. What cannot be looked at is left to git.
    """
    place = os.path.realpath(directory)
    while True:
        for name in (".git", "HEAD"):
            try:
                os.lstat(os.path.join(place, name))  # noqa: PTH118 - start-up
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError:
                pass
            return True
        above = os.path.dirname(place)  # noqa: PTH120 - start-up
        if above == place:
            return False
        place = above


_OUTSIDE = ("not a git repository", "must be run in a work tree")
_UNTAGGED = ("no tag exactly matches", "No names found", "cannot describe")


def _refuse_embedded(directory: str, found: str) -> None:
    """Refuse a repository without `.git` around `directory`: a tree can bring one along.

    Files called HEAD, config, objects and refs are enough for git to take what is beside them for
    a repository, and its `config` may name programs that `git status` runs (a clean filter). Git
    itself never checks out a `.git`, so a repository that has one was made here.
    """
    place, repository = os.path.realpath(directory), os.path.realpath(found)
    if os.path.commonpath([place, repository]) == repository:
        raise Rejected(
            f"{directory}: git takes {found} for a repository, and a tree can bring such a one "
            "along: its config can run programs",
            hint="remove HEAD, config, objects and refs from that directory, or pack another one",
        )


def _environment(caller: Mapping[str, str]) -> dict[str, str]:
    return {name: caller[name] for name in _PASSED if name in caller} | _FIXED


def _nothing(reason: str) -> Found:
    return Found(
        None,
        Report.of(
            [
                Finding(
                    "no-git",
                    f"{reason}: the artifact will not say which commit it is",
                    Severity.WARNING,
                    hint="say it with --revision and --source",
                )
            ]
        ),
    )


def _remote(listed: str) -> str:
    """The URL of `origin`, or of the only remote there is."""
    urls: dict[str, str] = {}
    for record in listed.split("\0"):
        key, _, url = record.partition("\n")
        if url:
            urls.setdefault(key.removeprefix("remote.").removesuffix(".url"), url)
    if len(urls) == 1:
        return next(iter(urls.values()))
    return urls.get("origin", "")


def _changed(status: str, prefix: str) -> tuple[str, ...]:
    """The names in `git status -z`, relative to the directory that was asked about."""
    paths = (record[3:] for record in status.split("\0") if record)
    return tuple(sorted(path.removeprefix(prefix) for path in paths))


class _Git:
    """Runs git in one directory."""

    def __init__(self, directory: str, environment: Mapping[str, str], timeout: float) -> None:
        self.directory, self.environment, self.timeout = directory, environment, timeout

    @contextmanager
    def ask(
        self, *arguments: str, none: tuple[str, ...] = (), empty: bool = False
    ) -> Iterator[_Answer]:
        """Ask one question; git works on it until the answer is wanted, or the block ends.

        It is empty if git says one of `none`, or, with `empty`, if it says nothing and exits
        with 1. FileNotFoundError if there is no git.
        """
        import subprocess  # noqa: PLC0415 - start-up, outside of a repository

        command = ["git", "--no-pager", *_SAFE, "-C", self.directory, *arguments]
        try:
            process = subprocess.Popen(  # noqa: S603 - fixed words, and a directory after -C
                command,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except PermissionError as e:
            raise Denied(f"git cannot be run: {e.strerror}") from e

        def answer() -> str:
            try:
                found, errors = process.communicate(timeout=self.timeout)
            except subprocess.TimeoutExpired as e:
                raise Unavailable(f"git {arguments[0]}: no answer in {self.timeout:g} s") from e
            if process.returncode == 0:
                return found.decode("utf-8", "surrogateescape")
            said = errors.decode("utf-8", "replace").strip()
            if (empty and process.returncode == 1) or any(text in said for text in none):
                return ""
            raise _failed(self.directory, arguments[0], said)

        with process:
            try:
                yield answer
            finally:
                process.kill()  # nothing happens to one that has ended


def _asking(running: ExitStack, git: _Git, *arguments: str, **how: Any) -> _Answer:
    return running.enter_context(git.ask(*arguments, **how))


def _failed(directory: str, question: str, said: str) -> Denied | Unavailable:
    if "dubious ownership" in said or "unsafe repository" in said:
        return Denied(
            f"{directory}: git does not read a repository that belongs to someone else",
            hint="git config --global --add safe.directory with its path, or check out as this "
            "user; without git, --revision and --source say where it comes from",
        )
    first = (said.splitlines() or ["no reason given"])[0]
    return Unavailable(f"{directory}: git {question} failed: {first[:300]!r}")
