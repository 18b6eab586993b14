"""What git knows about a directory, asked without letting the repository or the caller interfere.

No hook, pager, prompt, editor, file system monitor or network runs; of the caller's environment
only what finds git and its configuration gets through, and no GIT_* but where to stop looking.
Remotes are read as configured: `insteadOf` may put a token into them.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

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


def look(directory: str, *, environment: Mapping[str, str], timeout: float = TIMEOUT) -> Found:
    """Say which commit `directory` shows, and what in it differs from that.

    `.git` may be above `directory`. Without git, outside of a repository, in a bare one or before
    the first commit there is no checkout. Denied if git refuses to read the repository because
    someone else owns it; Rejected if the repository is part of the tree; Unavailable if git fails
    otherwise or takes longer than `timeout` seconds.
    """
    git = _Git(directory, _environment(environment), timeout)
    try:
        inside = git.ask("rev-parse", "--is-inside-work-tree", "--show-prefix", none=_OUTSIDE)
    except FileNotFoundError:
        return _nothing("git is not installed")
    if not inside.startswith("true"):
        return _nothing("not a git work tree")
    _refuse_embedded(directory, git.ask("rev-parse", "--absolute-git-dir").removesuffix("\n"))
    prefix = inside.partition("\n")[2].removesuffix("\n")
    if not git.ask("rev-parse", "--verify", "--quiet", "HEAD", empty=True):
        return _nothing("the repository has no commit")
    time, commit = git.ask("rev-list", "--timestamp", "--max-count=1", "HEAD", "--").split()
    return Found(
        Checkout(
            commit,
            int(time),
            branch=git.ask("symbolic-ref", "--quiet", "--short", "HEAD", empty=True).strip(),
            tag=git.ask("describe", "--tags", "--exact-match", "HEAD", none=_UNTAGGED).strip(),
            remote=_remote(git),
            changed=_changed(git.ask(*_STATUS), prefix),
        ),
        Report(),
    )


_OUTSIDE = ("not a git repository", "must be run in a work tree")
_UNTAGGED = ("no tag exactly matches", "No names found", "cannot describe")


def _refuse_embedded(directory: str, found: str) -> None:
    """Refuse a repository without `.git` around `directory`: a tree can bring one along.

    Files called HEAD, config, objects and refs are enough for git to take what is beside them for
    a repository, and its `config` may name programs that `git status` runs (a clean filter). Git
    itself never checks out a `.git`, so a repository that has one was made here.
    """
    if Path(os.path.realpath(directory)).is_relative_to(os.path.realpath(found)):
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


def _remote(git: _Git) -> str:
    """The URL of `origin`, or of the only remote there is."""
    listed = git.ask("config", "--null", "--get-regexp", r"^remote\..*\.url$", empty=True)
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


@dataclass(frozen=True, slots=True)
class _Git:
    """Runs git in one directory."""

    directory: str
    environment: Mapping[str, str]
    timeout: float

    def ask(self, *arguments: str, none: tuple[str, ...] = (), empty: bool = False) -> str:
        """The answer to one question.

        It is empty if git says one of `none`, or, with `empty`, if it says nothing and exits
        with 1. FileNotFoundError if there is no git.
        """
        command = ["git", "--no-pager", *_SAFE, "-C", self.directory, *arguments]
        try:
            done = subprocess.run(  # noqa: S603 - fixed words, and a directory after -C
                command,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self.timeout,
                check=False,
            )
        except subprocess.TimeoutExpired as e:
            raise Unavailable(f"git {arguments[0]}: no answer in {self.timeout:g} s") from e
        except PermissionError as e:
            raise Denied(f"git cannot be run: {e.strerror}") from e
        if done.returncode == 0:
            return done.stdout.decode("utf-8", "surrogateescape")
        said = done.stderr.decode("utf-8", "replace").strip()
        if (empty and done.returncode == 1) or any(text in said for text in none):
            return ""
        raise _failed(self.directory, arguments[0], said)


def _failed(directory: str, question: str, said: str) -> Denied | Unavailable:
    if "dubious ownership" in said or "unsafe repository" in said:
        return Denied(
            f"{directory}: git does not read a repository that belongs to someone else",
            hint="git config --global --add safe.directory with its path, or check out as this "
            "user; without git, --revision and --source say where it comes from",
        )
    first = (said.splitlines() or ["no reason given"])[0]
    return Unavailable(f"{directory}: git {question} failed: {first[:300]!r}")
