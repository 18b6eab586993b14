"""An archive whose saving or loading is cut: nothing looks finished, and the next run ends it."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from pathlib import Path

import pytest
from airgaps import ANYTHING, Team
from registry import Registry, Switches

from ocipack.airgap.check import everything
from ocipack.airgap.contents import Wanted, gather
from ocipack.airgap.load import Load, Loader, moves
from ocipack.airgap.save import save
from ocipack.airgap.site import Site
from ocipack.copy import Transfers, copy
from ocipack.errors import OcipackError
from ocipack.mirror.model import Relocation
from ocipack.mirror.report import PLACED, Result
from ocipack.oci.reference import Reference
from ocipack.stores.http.patience import Patience
from ocipack.stores.http.transport import Transport
from ocipack.stores.layout.archive import Archive
from ocipack.stores.layout.stream import Stream
from ocipack.stores.layout.volumes import finished
from ocipack.stores.registry.registries import Registries
from ocipack.stores.registry.store import RegistryStore
from ocipack.verify import decide

MiB = 1024 * 1024
MOST = 200
"""More requests than one run makes."""

FAILURES = {"denied": (403, 1), "broken": (500, 1_000_000), "reset": (0, 1_000_000)}


def registries() -> Registries:
    return Registries(Transport(patience=Patience(sleep=lambda _: None)))


class Places:
    """The target, as `cli` opens it."""

    def __init__(self) -> None:
        self.registries = registries()
        self.stores: dict[str, RegistryStore] = {}

    def target(self, repository: Reference) -> RegistryStore:
        return self.stores.setdefault(
            repository.bare, self.registries.store(repository, writes=True, prefetch=False)
        )

    def anew(self, repository: Reference) -> RegistryStore:
        return registries().store(repository, writes=True, prefetch=False)


def fill(registry: Registry, *names: str) -> dict[str, Team]:
    """Put teams into a registry, with all that is attached."""
    teams = {}
    for name in names:
        team = Team(f"{registry.name}/{name}", words=name)
        store = registries().store(Reference.parse(team.name), writes=True)
        with Transfers() as transfers:
            transfers.copy(team.store, store, team.root, attached=True, tag="v1")
        teams[name] = team
    return teams


def save_from(registry: Registry, path: Path, *names: str, volume: int = 0) -> int:
    """Save what is in a registry, and say how many members were there already."""
    opened = registries()
    with Stream(path, volume=volume) as out, Transfers(1) as transfers:
        wanted = []
        for name in names:
            reference = Reference.parse(f"{registry.name}/{name}:v1")
            source = opened.store(reference)
            wanted.append(Wanted(source, decide(source, reference, ANYTHING)))
        return save(gather(wanted, transfers, files={}, earlier=None), out, jobs=1).kept


def load_into(registry: Registry, path: Path) -> list[Result]:
    relocation = Relocation(f"{registry.name}/base")
    with Archive(path) as files, Transfers(1) as transfers:
        files.check()
        site = Site(files)
        loads = [
            Load(move, whole, decide(site.at(whole.item.bare), whole.item.reference, ANYTHING))
            for move, whole in zip(
                moves(site, relocation), everything(site, transfers), strict=True
            )
        ]
        return Loader(site, relocation, Places(), transfers).run(loads)


def fetched(registry: Registry) -> Counter[str]:
    """How often each blob was asked for, whole."""
    asked = (re.fullmatch(r"GET /v2/\S+/blobs/(\S+)", line) for line in registry.lines())
    return Counter(one[1] for one in asked if one is not None)


@pytest.mark.parametrize(("volume", "failure"), [(0, "denied"), (0, "reset"), (MiB, "broken")])
def test_a_source_that_fails_at_each_request_in_turn(
    tmp_path: Path, volume: int, failure: str
) -> None:
    names = ("team/app", "team/web")
    with Registry(Switches()) as registry:
        fill(registry, *names)
        save_from(registry, tmp_path / "whole.tar", *names, volume=volume)
        whole = [path.read_bytes() for path in finished(tmp_path / "whole.tar")[-2:]]
        registry.switches.fail_status, registry.switches.fail_times = FAILURES[failure]
        kept = set()
        for number in range(1, MOST):
            path = tmp_path / f"{number}.tar"
            registry.requests.clear()
            registry.switches.fail_at = number
            with contextlib.suppress(OcipackError):
                save_from(registry, path, *names, volume=volume)
            reached = len(registry.requests) >= number
            if not reached:
                break
            first = fetched(registry)
            registry.requests.clear()
            registry.switches.fail_at = 0
            if not finished(path):  # a list of tags that is refused can be done without
                kept.add(save_from(registry, path, *names, volume=volume))
            again = first & fetched(registry)
            # the one that failed, and the one that was fetched ahead
            assert sum(again.values()) <= 2, f"request {number}: fetched twice: {again}"
            found = [one.read_bytes() for one in finished(path)[-2:]]
            if volume:
                whole[0], found[0] = b"", b""  # the list names the files
            assert found == whole
        assert 20 < number < MOST - 1
        assert max(kept) > 10


@pytest.mark.parametrize(
    ("failure", "referrers"), [("denied", True), ("reset", False), ("broken", True)]
)
def test_a_target_that_fails_at_each_request_in_turn(
    tmp_path: Path, failure: str, *, referrers: bool
) -> None:
    path = tmp_path / "site.tar"
    with Registry(Switches()) as registry:
        team = fill(registry, "team/app")["team/app"]
        save_from(registry, path, "team/app")
        repository = f"base/{team.name.replace(':', '-')}"
    own = {str(digest) for digest in team.store.content}
    for number in range(1, MOST):
        switches = Switches(referrers=referrers, fail_at=number)
        switches.fail_status, switches.fail_times = FAILURES[failure]
        with Registry(switches) as near:
            with contextlib.suppress(OcipackError):
                load_into(near, path)
            reached = len(near.requests) >= number
            switches.fail_at = 0
            there = near.repository(repository)
            if "v1" in there.tags:
                assert there.tags["v1"] == str(team.root.digest)
                assert own <= there.blobs | set(there.manifests)
            results = load_into(near, path)
            assert all(one.outcome in PLACED for one in results), [one.error for one in results]
            assert there.tags["v1"] == str(team.root.digest)
            assert own <= there.blobs | set(there.manifests)
            sent = Counter(near.received)
            assert sum(sent.values()) - len(sent) <= 1, f"request {number}: {sent}"
        if not reached:
            break
    assert 20 < number < MOST - 1


def test_copying_what_was_loaded_moves_nothing(tmp_path: Path) -> None:
    """The target has all: copying the origin's content there again finds nothing to do."""
    path = tmp_path / "site.tar"
    with Registry(Switches()) as registry, Registry(Switches()) as near:
        team = fill(registry, "team/app")["team/app"]
        save_from(registry, path, "team/app")
        load_into(near, path)
        store = registries().store(
            Reference.parse(f"{near.name}/base/{team.name.replace(':', '-')}"), writes=True
        )
        assert copy(team.store, store, team.root).copied == 0
