"""Compare copying between registries with crane, oras, regctl and skopeo; gates nothing.

    python benchmarks/copying.py [--rounds N] [--only NAME] [SET...]

Sets: `a` one big layer; `b` forty images whose layers are half the same; `c` an index of eight
platforms, with attestations, referrers and digest tags on each child; `c-old` the same into a
registry without referrers API; `d` two hundred tags that are there already. Each contestant finds
an empty registry each time, but in `d` one that has everything. Times are taken straight at the
registries, then once with 20 ms before every request; requests, bytes and memory in a run of
their own, through proxies that count.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))


from interop import images, servers
from interop.images import Wanted, Writer
from interop.peers import Missing, environment, find
from measure import Bench, Sample
from setting import kind, ocipack

Make = Callable[[str, str, Wanted, Path], str]
"""Writes the shell command that copies what is wanted from one host to another."""

SLOW = "20ms"
_MEMORY = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.stderr.write(done.stderr[-2000:])
sys.exit(done.returncode)
"""


@dataclass(frozen=True, slots=True)
class Set:
    """What is copied, from what kind of registry to which; `warm` if all is there already."""

    fill: Callable[[Writer, argparse.Namespace], None]
    source: servers.Kind
    target: servers.Kind
    contestants: Mapping[str, Make]
    warm: bool = False


def _each(command: str, *, at_once: int = 1) -> Make:
    """Run `command` for each job, so many at once."""

    def make(source: str, target: str, wanted: Wanted, folder: Path) -> str:
        jobs = folder / "jobs"
        jobs.write_text("".join(f"{job}\n" for job in wanted.jobs))
        name = "$job" if at_once == 1 else "{}"
        line = command.format(source=source, target=target, job=name)
        if at_once > 1:
            return f"xargs -P{at_once} -I{{}} {line} < {jobs}"
        return f"while read -r job; do {line} || exit 1; done < {jobs}"

    return make


def _whole(command: str) -> Make:
    """Run `command` for the one repository of the set."""

    def make(source: str, target: str, wanted: Wanted, folder: Path) -> str:  # noqa: ARG001 - Make
        return command.format(source=source, target=target, job=wanted.jobs[0].partition(":")[0])

    return make


def _copy(source: str, target: str, wanted: Wanted, folder: Path) -> str:  # noqa: ARG001 - Make
    job = wanted.jobs[0]
    places = (f"oci://{source}/{job}", f"oci://{target}/{job}")
    return " ".join(ocipack("copy", *places, "--allow-unsigned", "--quiet"))


def _mirror(source: str, target: str, wanted: Wanted, folder: Path) -> str:
    repositories = dict.fromkeys(job.partition(":")[0] for job in wanted.jobs)
    sources = [
        {"image": f"{source}/{name}", "to": f"oci://{target}/{name}", "select": {"pattern": ".*"}}
        for name in repositories
    ]
    if len(repositories) > 1:
        for one, name in zip(sources, repositories, strict=True):
            del one["select"]
            one["tags"] = [job.partition(":")[2] for job in wanted.jobs if job.startswith(name)]
    said = {
        "apiVersion": "ocipack.dev/v1alpha1",
        "kind": "Mirror",
        "to": f"oci://{target}/mirror",
        "unsigned": True,
        "sources": sources,
    }
    path = folder / "mirror.yaml"
    path.write_text(json.dumps(said))
    return " ".join(ocipack("mirror", "--file", str(path), "--quiet"))


_CRANE = "crane copy --insecure {source}/{job} {target}/{job}"
_ORAS = "oras cp --no-tty --from-plain-http --to-plain-http {source}/{job} {target}/{job}"
_REGCTL = (
    "regctl --host reg={source},tls=disabled --host reg={target},tls=disabled image copy "
    "{source}/{job} {target}/{job}"
)
_SKOPEO = (
    "skopeo --insecure-policy copy --all --preserve-digests --src-tls-verify=false "
    "--dest-tls-verify=false docker://{source}/{job} docker://{target}/{job}"
)
_PEERS: dict[str, Make] = {
    "crane": _each(_CRANE),
    "oras": _each(_ORAS),
    "regctl": _each(_REGCTL),
    "skopeo": _each(_SKOPEO),
}
_FULL: dict[str, Make] = {
    **_PEERS,
    "oras -r": _each(_ORAS.replace("oras cp", "oras cp -r")),
    "regctl --digest-tags --referrers": _each(
        _REGCTL.replace("image copy", "image copy --digest-tags --referrers")
    ),
    "ocipack copy": _copy,
}
SETS = {
    "a": Set(
        lambda writer, asked: images.layer(writer, asked.mib),
        *("docker-registry", "docker-registry"),
        {**_PEERS, "ocipack copy": _copy},
    ),
    "b": Set(
        lambda writer, asked: images.shared(writer, asked.images, images.MIB),
        *("docker-registry", "docker-registry"),
        {**_PEERS, "crane, four at once": _each(_CRANE, at_once=4), "ocipack mirror": _mirror},
    ),
    "c": Set(lambda writer, _: images.index(writer, 256 * 1024), "refregd", "refregd", _FULL),
    "c-old": Set(
        lambda writer, _: images.index(writer, 256 * 1024), "refregd", "docker-registry", _FULL
    ),
    "d": Set(
        lambda writer, asked: images.tags(writer, asked.tags),
        *("docker-registry", "docker-registry"),
        {
            **_PEERS,
            "crane -a": _whole(_CRANE.replace("crane copy", "crane copy -a")),
            "ocipack mirror": _mirror,
        },
        warm=True,
    ),
}


def main() -> None:
    """Read the command line and print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}")
    parser.add_argument("--rounds", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--mib", type=int, default=1024, help="of the layer in a")
    parser.add_argument("--images", type=int, default=40, help="in b")
    parser.add_argument("--tags", type=int, default=200, help="in d")
    parser.add_argument("--only", action="append", help="run this contestant; repeatable")
    parser.add_argument("--counts", action="store_true", help="take no times")
    asked = parser.parse_args()
    unknown = [name for name in asked.sets if name not in SETS]
    if unknown:
        parser.error(f"no such set: {', '.join(unknown)}")
    now = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    said = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    print(f"{now}, {said}, Python {platform.python_version()}")
    for name in asked.sets or list(SETS):
        with tempfile.TemporaryDirectory(prefix="ocipack-copying-") as folder:
            for line in Field(name, asked, Path(folder).resolve()).lines():
                print(line, flush=True)


class Field:
    """One set, with the registry that it comes from."""

    def __init__(self, name: str, asked: argparse.Namespace, folder: Path) -> None:
        self._name, self._set, self._asked, self._folder = name, SETS[name], asked, folder
        self._count = 0
        self._warm: servers.Server | None = None
        home = folder / "home"
        home.mkdir()
        path = f"{Path(find('crane')).parent}:{os.environ['PATH']}"
        self._bench = Bench(home, environment(home, PATH=path), asked.rounds)

    def lines(self) -> Iterator[str]:
        """Run everything and write it as markdown."""
        yield f"\n## {self._name}\n"
        contestants = {
            name: make for name, make in self._set.contestants.items() if self._has(name)
        }
        with ExitStack() as stack:
            source = stack.enter_context(self._registry(self._set.source))
            writer = Writer(source.host)
            self._set.fill(writer, self._asked)
            if self._set.warm:  # nobody changes it: one will do for all
                self._warm = stack.enter_context(self._registry(self._set.target))
                self._set.fill(Writer(self._warm.host), self._asked)
            if not self._asked.counts:
                yield from self._times(source.host, writer.wanted, contestants)
            yield from self._counts(source.host, writer.wanted, contestants)
            if not self._asked.counts and self._name != "a":
                yield f"\nwith {SLOW} before every request:\n"
                yield from self._slow(source.host, writer.wanted, contestants)

    def _has(self, name: str) -> bool:
        if self._asked.only and name not in self._asked.only:
            return False
        try:
            find(name.partition(" ")[0].rstrip(","))
        except Missing:
            return name.startswith("ocipack")
        return True

    @contextmanager
    def _registry(self, what: servers.Kind) -> Iterator[servers.Server]:
        self._count += 1
        folder = self._folder / f"registry-{self._count}"
        folder.mkdir()
        with servers.registry(what, folder) as server:
            yield server
        subprocess.run(["rm", "-rf", str(folder)], check=True)

    @contextmanager
    def _target(self) -> Iterator[servers.Server]:
        """An empty registry, or the one that has everything."""
        if self._warm is not None:
            yield self._warm
            return
        with self._registry(self._set.target) as target:
            yield target

    def _command(self, make: Make, source: str, target: str, wanted: Wanted) -> Sequence[str]:
        self._count += 1
        folder = self._folder / f"job-{self._count}"
        folder.mkdir()
        return ["sh", "-c", make(source, target, wanted, folder)]

    def _times(self, source: str, wanted: Wanted, contestants: Mapping[str, Make]) -> Iterator[str]:
        found: dict[str, list[Sample]] = {name: [] for name in contestants}
        names = list(contestants)
        for number in range(self._asked.rounds):
            turn = number % len(names)
            for name in names[turn:] + names[:turn]:
                with self._target() as target:
                    command = self._command(contestants[name], source, target.host, wanted)
                    found[name].append(self._bench.once(command))
        yield from table(found)

    def _counts(
        self, source: str, wanted: Wanted, contestants: Mapping[str, Make]
    ) -> Iterator[str]:
        yield "\n| contestant | requests = from + to | MiB sent | most MiB in a process | lost |"
        yield "|---|---|---|---|---|"
        details = []
        for name, make in contestants.items():
            with ExitStack() as stack:
                target = stack.enter_context(self._target())
                ends = [
                    stack.enter_context(servers.counting(host, self._folder))
                    for host in (source, target.host)
                ]
                for end in ends:
                    end.begin()
                command = self._command(make, ends[0].host, ends[1].host, wanted)
                memory = self._memory(command)
                seen = [end.seen() for end in ends]
                gone = ", ".join(images.lost(target.host, wanted)) or "nothing"
            sent = sum(one.sent for one in seen[1]) / images.MIB
            numbers = [len(one) for one in seen]
            yield (
                f"| {name} | {sum(numbers)} = {numbers[0]} + {numbers[1]} | {sent:.1f} | "
                f"{memory} | {gone} |"
            )
            if name.startswith("ocipack"):
                for way, one in zip(("from", "to"), seen, strict=True):
                    what = Counter(f"{r.method} {kind(r.path)} {r.status}" for r in one)
                    said = ", ".join(f"{count} {text}" for text, count in sorted(what.items()))
                    details.append(f"{name}, {way}: {said}")
        yield ""
        yield from details

    def _memory(self, command: Sequence[str]) -> int:
        run = subprocess.run(
            [sys.executable, "-c", _MEMORY, *command],
            env=dict(self._bench.env),
            cwd=self._bench.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode:
            raise RuntimeError(f"exit {run.returncode}: {command[-1]}\n{run.stderr}")
        return int(run.stdout) // 1024

    def _slow(self, source: str, wanted: Wanted, contestants: Mapping[str, Make]) -> Iterator[str]:
        found: dict[str, list[Sample]] = {}
        for name, make in contestants.items():
            with ExitStack() as stack:
                target = stack.enter_context(self._target())
                ends = [
                    stack.enter_context(servers.counting(host, self._folder))
                    for host in (source, target.host)
                ]
                for end in ends:
                    end.begin(SLOW)
                command = self._command(make, ends[0].host, ends[1].host, wanted)
                found[name] = [self._bench.once(command)]
        yield from table(found)


def table(found: Mapping[str, Sequence[Sample]]) -> Iterator[str]:
    """Write rows: times, and the ratio to the first contestant, from the rounds' own ratios."""
    yield "| contestant | wall ms, median (min-max) | CPU ms | wall ratio |"
    yield "|---|---|---|---|"
    base = next(iter(found.values()))
    for name, samples in found.items():
        walls = [1000 * one.wall for one in samples]
        cpu = statistics.median(1000 * one.cpu for one in samples)
        ratio = statistics.median(a.wall / b.wall for a, b in zip(samples, base, strict=True))
        yield (
            f"| {name} | {statistics.median(walls):.0f} ({min(walls):.0f}-{max(walls):.0f}) "
            f"| {cpu:.0f} | {ratio:.2f} |"
        )


if __name__ == "__main__":
    main()
