"""How `ocipack vendor` looks at the tree, and writes it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ocipack.errors import Rejected
from ocipack.files.owned import inside, remove
from ocipack.files.replacing import replace
from ocipack.files.snapshot import snapshot
from ocipack.files.unpack import write_tree
from ocipack.vendor.lock import Held, VendorLock
from ocipack.vendor.run import Step, held


@dataclass(frozen=True, slots=True)
class Tree:
    """The directories below `base`, and the lock at the path `lock`."""

    base: str
    lock: str

    def look(self, into: str) -> frozenset[Held] | None:
        """The files in a directory; None if it is not there."""
        path = inside(self.base, into)
        if not Path(path).exists():
            return None
        try:
            return frozenset(held(snapshot(path).tree))
        except Rejected as e:
            raise Rejected(
                f"{into}: it holds what is no plain file, and vendor brings nothing else",
                report=e.report,
                hint="remove it, or keep it outside of the directory",
            ) from e

    def write(self, step: Step, lock: VendorLock) -> None:
        """Do what `step` says, then write `lock`: each directory is what its lock says, or was."""
        if step.tree is not None:
            write_tree(step.tree.entries(), inside(self.base, step.into), force=True)
        elif step.gone:
            remove(self.base, step.into, (one.name for one in step.gone))
        self.write_lock(lock)

    def write_lock(self, lock: VendorLock) -> None:
        """Write the lock, unless it says that already."""
        data = str(lock).encode()
        path = Path(self.lock)
        if not path.is_file() or path.read_bytes() != data:
            replace(self.lock, data, mode=0o644)
