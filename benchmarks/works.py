"""The works that are compared, each with the peer that sets the measure (docs/benchmarks.md)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from interop.peers import find
from interop.servers import Kind
from measure import Command, Prepare, table
from setting import Setting, cosign_sign, cosign_verify, ocipack

Work = Callable[[Setting], Iterator[str]]
MANY = 50
SLOW = "20ms"
_FACTS = ("--source", "https://example.com/site", "--revision", "main@sha1:" + "0" * 40)
_PACK_NEEDS = "import click, deflate, hashlib, json"
_VERIFY_NEEDS = (
    "import click, urllib3\n"
    "from cryptography.hazmat.primitives import serialization\n"
    "from cryptography.hazmat.primitives.asymmetric import ec"
)


def start(setting: Setting) -> Iterator[str]:
    """Start: `--version` and `--help`, against Python with click and nothing else."""
    click = "python -c 'import click'"
    contestants: dict[str, Command] = {
        click: [sys.executable, "-c", "import click"],
        "python -c pass": [sys.executable, "-c", "pass"],
        "ocipack --version": ocipack("--version"),
        "ocipack --help": ocipack("--help"),
        "ocipack verify --help": ocipack("verify", "--help"),
        "crane version": [find("crane"), "version"],
        "cosign3 version": [find("cosign3"), "version"],
        "flux --version": [find("flux"), "--version"],
    }
    yield from _compared(setting, contestants, click)


def pack(setting: Setting) -> Iterator[str]:
    """Pack 2,000 files, against `flux build artifact`."""
    site, work = str(setting.site), setting.desk.folder
    made = work / "flux.tgz"
    fresh = _numbered(work / "layout")
    yield from _compared(
        setting,
        {
            "flux build artifact": [
                *(find("flux"), "build", "artifact", "--path", site, "--output", str(made)),
            ],
            "ocipack pack": ocipack("pack", site),
            "python, imports alone": [sys.executable, "-c", _PACK_NEEDS],
            "ocipack pack --to ocidir://": lambda: ocipack(
                "pack", site, "--to", f"ocidir://{next(fresh)}"
            ),
        },
        "flux build artifact",
    )
    blobs = (next(fresh).parent / "layout-1" / "blobs" / "sha256").iterdir()
    layer = max(path.stat().st_size for path in blobs)
    theirs = made.stat().st_size
    yield f"layer: flux {theirs:,} bytes, ocipack {layer:,} bytes = {layer / theirs:.3f}"


def push(setting: Setting) -> Iterator[str]:
    """Push 2,000 files, against `flux push artifact` (which tags too; `pack` names no tag)."""
    site = str(setting.site)

    def ours(*, proxied: bool = False) -> Command:
        place = setting.fresh(proxied=proxied).place
        return ocipack("pack", site, "--to", place)

    def theirs(*, proxied: bool = False) -> Command:
        target = f"oci://{setting.fresh(proxied=proxied)}:v1"
        return [find("flux"), "push", "artifact", target, "-f", site, *_FACTS]

    contestants: dict[str, Prepare | Command] = {
        "flux push artifact": theirs,
        "ocipack pack --to": ours,
        "python, imports alone": [sys.executable, "-c", f"{_PACK_NEEDS}, urllib3"],
    }
    yield from _compared(setting, contestants, "flux push artifact")
    for name, command in (("flux", theirs(proxied=True)), ("ocipack", ours(proxied=True))):
        yield f"{name}: {_counted(setting, command)}"


def sign(setting: Setting) -> Iterator[str]:
    """Sign something unsigned with a key, in each form, against `cosign sign`."""
    key = ("--key", setting.key)

    def ours(form: str) -> Prepare:
        return lambda: ocipack("sign", f"oci://{setting.subject()}", *key, "--format", form)

    yield from _compared(
        setting,
        {
            "cosign sign, bundle": lambda: cosign_sign(setting, "bundle", setting.subject()),
            "cosign sign, legacy": lambda: cosign_sign(setting, "legacy", setting.subject()),
            "ocipack sign, bundle": ours("bundle"),
            "ocipack sign, legacy": ours("legacy"),
            "ocipack sign, both": ours("both"),
        },
        "cosign sign, bundle",
    )


def verify(setting: Setting) -> Iterator[str]:
    """Verify one image, whole process, on loopback, against `cosign verify`."""
    yield from _verified(setting, setting.server.host, "0s")


def verify_slow(setting: Setting) -> Iterator[str]:
    """Verify one image where each request takes 20 ms more, against `cosign verify`."""
    yield from _verified(setting, setting.proxy.host, SLOW)


def _verified(setting: Setting, host: str, wait: str) -> Iterator[str]:
    setting.proxy.begin(wait)
    contestants: dict[str, Command] = {}
    for form in ("bundle", "legacy"):
        there = setting.signed(form)
        target = f"{host}/{there.name}@{there.digest('v1')}"
        contestants[f"cosign verify, {form}"] = cosign_verify(setting, target)
        contestants[f"ocipack verify, {form}"] = ocipack(
            "verify", f"oci://{target}", "--key", setting.pub
        )
    contestants["python, imports alone"] = [sys.executable, "-c", _VERIFY_NEEDS]
    yield from _compared(setting, contestants, "cosign verify, bundle")
    setting.proxy.begin()


def verify_many(setting: Setting) -> Iterator[str]:
    """Verify fifty images in one process, against `cosign verify` with fifty arguments."""
    targets = []
    for _ in range(MANY):
        there = setting.signed("bundle")
        targets.append(f"{there}@{there.digest('v1')}")
    one, rest = targets[:1], targets

    def ours(some: Sequence[str]) -> Command:
        return ocipack("verify", *(f"oci://{target}" for target in some), "--key", setting.pub)

    contestants = {
        f"cosign verify, {MANY}": cosign_verify(setting, *rest),
        f"ocipack verify, {MANY}": ours(rest),
        "cosign verify, 1": cosign_verify(setting, *one),
        "ocipack verify, 1": ours(one),
    }
    found = setting.bench.compare(contestants)
    yield from table(found, f"cosign verify, {MANY}")
    each = {}
    for name in ("cosign", "ocipack"):
        many, single = found[f"{name} verify, {MANY}"], found[f"{name} verify, 1"]
        gaps = sorted(a.wall - b.wall for a, b in zip(many, single, strict=True))
        each[name] = 1000 * gaps[len(gaps) // 2] / (MANY - 1)
    yield (
        f"each further one: cosign {each['cosign']:.2f} ms, ocipack {each['ocipack']:.2f} ms "
        f"= {each['ocipack'] / each['cosign']:.2f}"
    )


def requests(setting: Setting) -> Iterator[str]:
    """Count requests, by digest unless it says otherwise; they do not depend on the machine."""
    key, host = ("--key", setting.key), setting.proxy.host
    yield "| work | cosign | ocipack | which |"
    yield "|---|---|---|---|"
    for form in ("bundle", "legacy"):
        subject = setting.subject(proxied=True)
        theirs = cosign_sign(setting, form, subject)
        subject = setting.subject(proxied=True)
        ours = ocipack("sign", f"oci://{subject}", *key, "--format", form)
        yield _row(setting, f"sign, {form}", theirs, ours)
        yield _row(setting, f"sign, {form}, again", theirs, ours)
    subject = setting.subject(proxied=True)
    ours = ocipack("sign", f"oci://{subject}", *key, "--format", "both")
    yield _row(setting, "sign, both", None, ours)
    for form in ("bundle", "legacy", "both"):
        there = setting.signed(form)
        for name, at in (("", f"@{there.digest('v1')}"), (" by tag", ":v1")):
            target = f"{host}/{there.name}{at}"
            ours = ocipack("verify", f"oci://{target}", "--key", setting.pub)
            yield _row(setting, f"verify{name}, {form}", cosign_verify(setting, target), ours)
    small = setting.desk.folder / "small"
    if not small.exists():
        small.mkdir()
        (small / "settings.yaml").write_text(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\n"
        )
    place = f"{setting.fresh(proxied=True).place}:v1"
    ours = ocipack("ship", str(small), "--to", place, *key)
    yield _row(setting, "ship", None, ours)
    yield _row(setting, "ship, unchanged", None, ours)


def _row(setting: Setting, name: str, theirs: Command | None, ours: Command) -> str:
    peer = setting.count(theirs).total() if theirs is not None else "-"
    total, _, which = _counted(setting, ours).partition(": ")
    return f"| {name} | {peer} | {total} | {which} |"


def _counted(setting: Setting, command: Command) -> str:
    seen = setting.count(command)
    return f"{seen.total()}: {', '.join(f'{n} {what}' for what, n in sorted(seen.items()))}"


def _compared(
    setting: Setting, contestants: Mapping[str, Prepare | Command], reference: str
) -> Iterator[str]:
    yield from table(setting.bench.compare(contestants), reference)


def _numbered(path: Path) -> Iterator[Path]:
    number = 0
    while True:
        number += 1
        yield path.with_name(f"{path.name}-{number}")


API: tuple[Kind, ...] = ("refregd",)
STORED: tuple[Kind, ...] = ("docker-registry",)
"""Blobs belong to a repository there, so that every push is a first one."""

WORKS: dict[str, tuple[Work, tuple[Kind, ...]]] = {
    "start": (start, API),
    "pack": (pack, API),
    "push": (push, STORED),
    "sign": (sign, API),
    "verify": (verify, API),
    "verify-20ms": (verify_slow, API),
    "verify-50": (verify_many, API),
    "requests": (requests, API + STORED),
}
"""Each work, and the registries that it runs against."""
