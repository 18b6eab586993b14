"""Compare ocipack with its peers and print ratios; gates nothing.

    python benchmarks/run.py [--rounds N] [WORK...]

Runs the ocipack of this interpreter against the peers that tests/interop/peers.sh built.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from interop import servers
from setting import Setting, prepared
from works import WORKS, start

ROUNDS = 15


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("works", nargs="*", metavar="WORK", help=f"of {', '.join(WORKS)}")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="default: %(default)s")
    asked = parser.parse_args()
    unknown = [name for name in asked.works if name not in WORKS]
    if unknown:
        parser.error(f"no such work: {', '.join(unknown)}")
    for line in lines(asked.works or list(WORKS), asked.rounds):
        print(line, flush=True)


def lines(names: list[str], rounds: int) -> Iterator[str]:
    """Run the works and yield what they found, as markdown."""
    now = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    load = os.getloadavg()[0]
    yield f"{now}, {os.cpu_count()} cores, load {load:.1f}, Python {platform.python_version()}"
    with tempfile.TemporaryDirectory(prefix="ocipack-bench-") as folder, ExitStack() as stack:
        settings: dict[servers.Kind, Setting] = {}
        for name in names:
            work, kinds = WORKS[name]
            for kind in kinds:
                if kind not in settings:
                    place = Path(folder).resolve() / kind
                    settings[kind] = stack.enter_context(prepared(kind, place, rounds))
                where = f" ({kind})" if work is not start else ""
                yield f"\n## {name}{where}\n\n{(work.__doc__ or '').strip()}\n"
                yield from work(settings[kind])
        yield f"\nload at the end {os.getloadavg()[0]:.1f}"


if __name__ == "__main__":
    main()
