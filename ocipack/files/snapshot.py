"""A directory, looked at once.

Links are never followed behind the reader's back: directories are opened from the handle of their
parent, and a file that is not the one that was seen (another inode, another size, more or fewer
bytes, written since) when it is read at last is an error.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import itemgetter

from ocipack.errors import Misuse, Rejected, Unavailable
from ocipack.files.seam import error_about, printable, translated
from ocipack.report import Finding, Report, Severity
from ocipack.tree.ignore import Matcher
from ocipack.tree.limits import DEPTH_LIMIT, LIMITS, Limits
from ocipack.tree.tree import File, Tree, check_name

REFUSE, RESOLVE = "refuse", "resolve"
SYMLINKS = (REFUSE, RESOLVE)

_CHUNK = 1024 * 1024
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_VCS = ".git"

_EVERYTHING = Matcher(())


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A tree as it was found, and warnings about it."""

    tree: Tree
    report: Report


def snapshot(
    root: str,
    *,
    left_out: Matcher = _EVERYTHING,
    symlinks: str = REFUSE,
    limits: Limits = LIMITS,
) -> Snapshot:
    """Look at the directory (or the single file) `root`; contents are read later, when asked for.

    `.git` is never part of it, whatever the patterns say: it holds credentials. Symbolic links are
    refused, or with `resolve` replaced by what they point at, which must be inside `root` and not
    left out itself.

    Rejected, with every finding, for links, special files and names that cannot be packed, and
    for more than `limits.entries` names. Misuse if `root` is not there; Denied or Unavailable
    where it cannot be read.
    """
    if symlinks not in SYMLINKS:
        raise Misuse(f"no such way to treat links: {symlinks!r}", hint="use refuse or resolve")
    walk = _Walk(root, left_out, limits.entries, resolve=symlinks == RESOLVE)
    walk.start()
    report = Report.of(walk.findings)
    if not report.ok:
        raise _refusal(report)
    tree = Tree(walk.files)
    return Snapshot(tree, report + tree.case_clashes() + Report.of(_private(walk)))


def _refusal(report: Report) -> Rejected:
    errors = [finding for finding in report.findings if finding.severity is Severity.ERROR]
    names = ", ".join(finding.file for finding in errors[:5])
    more = f" and {len(errors) - 5} more" if len(errors) > 5 else ""  # noqa: PLR2004 - as above
    links = all(finding.rule == "symlink" for finding in errors)
    return Rejected(
        f"{'links' if links else 'what'} cannot be packed: {names}{more}",
        report=report,
        hint="replace links by --symlinks=resolve, or leave them out with --ignore"
        if links
        else "leave it out with --ignore, or rename it",
    )


class _Walk:
    """One pass over a directory; gathers, and leaves judging to `snapshot`."""

    def __init__(self, root: str, left_out: Matcher, limit: int, *, resolve: bool) -> None:
        self.root, self.left_out, self.limit, self.resolve = root, left_out, limit, resolve
        self.files: dict[str, File] = {}
        self.findings: list[Finding] = []
        self.private: list[str] = []
        self._seen = 0

    def start(self) -> None:
        """Walk all of it."""
        with translated(self.root):
            self.root = os.path.realpath(self.root)
            try:
                found = os.lstat(self.root)
            except FileNotFoundError as e:
                raise Misuse(f"{printable(self.root)}: no such directory") from e
            if stat.S_ISREG(found.st_mode):
                self.root, name = os.path.split(self.root)
                self._entry(_Place("", self.root, ()), name, found)
                return
            if not stat.S_ISDIR(found.st_mode):
                raise Misuse(f"{printable(self.root)}: neither a directory nor a file")
            handle = os.open(self.root, _DIRECTORY)
        self._directory(handle, _Place("", self.root, ()))

    def _directory(self, handle: int, place: _Place) -> None:
        """Walk the open directory `handle`, and close it."""
        try:
            with translated(place.path):
                found = os.fstat(handle)
                if (found.st_dev, found.st_ino) in place.chain:
                    self._refuse("symlink-cycle", place.name, "a link to a directory around it")
                    return
                inner = place.inside(found)
                with os.scandir(handle) as entries:
                    listed = [(e.name, e.stat(follow_symlinks=False)) for e in entries]
            for name, status in sorted(listed, key=itemgetter(0)):
                if name != _VCS:
                    self._entry(inner, name, status, handle)
        finally:
            os.close(handle)

    def _entry(
        self, place: _Place, base: str, status: os.stat_result, handle: int | None = None
    ) -> None:
        name, path = place.name_of(base), f"{place.path}/{base}"
        directory = stat.S_ISDIR(status.st_mode)
        if self._is_left_out(name, path, directory=directory):
            return
        self._seen += 1
        if self._seen > self.limit:
            raise Rejected(
                f"more than {self.limit} files and directories",
                hint="pack a smaller directory, or leave files out with --ignore",
            )
        if not self._sayable(name):
            return
        if directory:
            with translated(path):
                inner = os.open(base, _DIRECTORY, dir_fd=handle)
            self._directory(inner, _Place(name, path, place.chain))
        elif stat.S_ISREG(status.st_mode):
            self._file(name, path, status)
        elif stat.S_ISLNK(status.st_mode):
            self._link(name, path, place)
        else:
            self._refuse("special-file", name, "a device, socket or pipe")

    def _is_left_out(self, name: str, path: str, *, directory: bool) -> bool:
        """Whether patterns leave it out under this name, or under its own where a link led here."""
        found = self.left_out(name, directory=directory)
        if self.resolve and not found:
            own = os.path.relpath(path, self.root)
            found = own != name and self.left_out(own, directory=directory)
        # a pattern with ! may want something from below a directory that is left out
        return found and not (directory and self.left_out.takes_back)

    def _sayable(self, name: str) -> bool:
        try:
            if name.count("/") >= DEPTH_LIMIT:
                raise Misuse(f"more than {DEPTH_LIMIT} directories deep")  # noqa: TRY301 - as below
            check_name(name)
        except Misuse as e:
            self._refuse("name", name, str(e))
            return False
        return True

    def _file(self, name: str, path: str, status: os.stat_result) -> None:
        mode = status.st_mode
        # the owner's bit alone, as git has it: umask cannot take it away, nor add it
        executable = bool(mode & stat.S_IXUSR)
        self.files[name] = File(status.st_size, executable, partial(_content, path, status))
        if mode & (stat.S_ISUID | stat.S_ISGID):
            self.findings.append(
                Finding(
                    "set-id-mode",
                    "runs as its owner or group here; in the artifact it will not",
                    Severity.WARNING,
                    file=name,
                )
            )
        if not mode & (stat.S_IRWXG | stat.S_IRWXO):
            self.private.append(name)

    def _link(self, name: str, path: str, place: _Place) -> None:
        real = os.path.realpath(path)
        target = os.path.relpath(real, self.root)
        if not self.resolve:
            self._refuse("symlink", name, f"a symbolic link to {printable(target)}")
            return
        if os.path.commonpath([real, self.root]) != self.root:
            self._refuse("symlink-outside", name, f"a link out of the tree: {printable(target)}")
            return
        try:
            status = os.lstat(real)
        except OSError:
            self._refuse("symlink-dangling", name, f"a link to nothing: {printable(target)}")
            return
        own, directory = os.path.relpath(real, self.root), stat.S_ISDIR(status.st_mode)
        if _VCS in own.split("/") or self.left_out(own, directory=directory):
            self._refuse("symlink-left-out", name, f"a link to what is left out: {own}")
        elif directory:
            with translated(real):
                handle = os.open(real, _DIRECTORY)
            self._directory(handle, _Place(name, real, place.chain))
        elif stat.S_ISREG(status.st_mode):
            self._file(name, real, status)
        else:
            self._refuse("special-file", name, "a link to a device, socket, pipe, or itself")

    def _refuse(self, rule: str, name: str, message: str) -> None:
        self.findings.append(Finding(rule, message, file=printable(name)))


class _Place:
    """A directory: its name in the tree, where it really is, the directories around it."""

    __slots__ = ("chain", "name", "path")

    def __init__(self, name: str, path: str, chain: tuple[tuple[int, int], ...]) -> None:
        self.name, self.path, self.chain = name, path, chain

    def name_of(self, base: str) -> str:
        return f"{self.name}/{base}" if self.name else base

    def inside(self, found: os.stat_result) -> _Place:
        return _Place(self.name, self.path, (*self.chain, (found.st_dev, found.st_ino)))


def _private(walk: _Walk) -> Iterable[Finding]:
    """Warn of files that only their owner may read: in the artifact everyone may."""
    message = "only its owner may read it here; in the artifact everyone may"
    names = walk.private
    if len(names) == len(walk.files) > 1:
        names, message = [""], f"all files are private here (a umask of 077?): {message}"
    return [Finding("private-mode", message, Severity.WARNING, file=name) for name in names]


def _content(path: str, seen: os.stat_result) -> Iterable[bytes]:
    """The content of the file that was seen, or Unavailable if it is not that any more."""
    size = seen.st_size
    if size < _CHUNK:
        handle = _opened(path, seen)
        try:
            data = os.read(handle, size + 1)  # one byte more is asked for, and must not come
        except OSError as e:
            raise error_about(e, path) from e
        finally:
            os.close(handle)
        if len(data) == size:
            return (data,)
    return _chunks(path, seen)  # long, not the same, or a file system that gives a little at a time


def _opened(path: str, seen: os.stat_result) -> int:
    """Open what was seen, if that is still what has this name."""
    try:
        handle = os.open(path, _FILE)
        found = os.fstat(handle)
    except OSError as e:
        raise error_about(e, path) from e
    if _known_by(found) != _known_by(seen):
        os.close(handle)
        raise _changed(path)
    return handle


def _known_by(found: os.stat_result) -> tuple[int, ...]:
    """What tells a file from another one, and its content from what was written over it."""
    return found.st_ino, found.st_dev, found.st_mtime_ns


def _chunks(path: str, seen: os.stat_result) -> Iterator[bytes]:
    handle, left = _opened(path, seen), seen.st_size
    try:
        while True:
            chunk = os.read(handle, min(left + 1, _CHUNK))
            if len(chunk) > left or (left and not chunk):
                raise _changed(path)
            left -= len(chunk)
            if chunk:
                yield chunk
            if not left and len(chunk) < _CHUNK:
                break  # one byte more was asked for, and did not come
    except OSError as e:
        raise error_about(e, path) from e
    finally:
        os.close(handle)


def _changed(path: str) -> Unavailable:
    return Unavailable(
        f"{printable(path)}: changed while it was being read", hint="run again when it is at rest"
    )
