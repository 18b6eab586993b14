"""Run commands in turn and compare them: ratios within one run, never milliseconds between runs.

Every round runs every contestant once, in a rotated order, so that a machine that slows down or
speeds up does so for all of them. A contestant that fails ends the run: a tool that skips its work
looks fast.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Command = Sequence[str]
Prepare = Callable[[], Command]
"""Makes the command of one round, outside the clock: a fresh repository, an unsigned subject."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One run of one process: seconds around it, and of processor time in it and its children."""

    wall: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Bench:
    """Where commands run, in which environment, and how often each."""

    folder: Path
    env: Mapping[str, str]
    rounds: int

    def once(self, command: Command) -> Sample:
        """Run one command to its end."""
        with tempfile.TemporaryFile() as err:
            began = time.perf_counter()
            process = subprocess.Popen(
                command,
                env=dict(self.env),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=err,
            )
            _, status, used = os.wait4(process.pid, 0)
            wall = time.perf_counter() - began
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                err.seek(0)
                words = err.read()[-2000:].decode(errors="replace")
                message = f"exit {process.returncode}: {' '.join(command)}\n{words}"
                raise RuntimeError(message)
        return Sample(wall, used.ru_utime + used.ru_stime)

    def compare(self, contestants: Mapping[str, Prepare | Command]) -> dict[str, list[Sample]]:
        """Run all contestants, one round more than is counted: the first warms caches."""
        names = list(contestants)
        found: dict[str, list[Sample]] = {name: [] for name in names}
        for number in range(-1, self.rounds):
            turn = number % len(names)
            for name in names[turn:] + names[:turn]:
                made = contestants[name]
                sample = self.once(made() if callable(made) else made)
                if number >= 0:
                    found[name].append(sample)
        return found


def table(found: Mapping[str, Sequence[Sample]], reference: str) -> list[str]:
    """Write rows of a markdown table: milliseconds, and the ratio to the reference.

    The ratio is the median of the rounds' own ratios, so that a slow moment of the machine, which
    hits a whole round, does not decide it.
    """
    lines = [
        "| contestant | wall ms, median (min-max) | CPU ms | wall ratio | CPU ratio |",
        "|---|---|---|---|---|",
    ]
    base = found[reference]
    for name, samples in found.items():
        walls = [1000 * one.wall for one in samples]
        cpu = statistics.median(1000 * one.cpu for one in samples)
        pairs = list(zip(samples, base, strict=True))
        wall_ratio = statistics.median(one.wall / other.wall for one, other in pairs)
        cpu_ratio = statistics.median(one.cpu / other.cpu for one, other in pairs)
        lines.append(
            f"| {name} | {statistics.median(walls):.0f} ({min(walls):.0f}-{max(walls):.0f}) "
            f"| {cpu:.0f} | {wall_ratio:.2f} | {cpu_ratio:.2f} |"
        )
    return lines
