"""Whatever fails, and whenever we are killed: no tag on something unsigned or incomplete.

The next run completes, and sends no blob again that was there already.
"""

from __future__ import annotations

import contextlib
import random
import subprocess
import time
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import content
import pytest
from interop.peers import OCIPACK, Desk
from interop.servers import Proxy, Server
from interop.trees import tree
from interop.wire import Repository
from registry import Registry, Switches
from world import key

from ocipack.errors import OcipackError
from ocipack.oci.reference import Reference
from ocipack.report import Report
from ocipack.ship import Stage, ship
from ocipack.stores.http.patience import Patience
from ocipack.stores.http.transport import Transport
from ocipack.stores.registry.registries import Registries
from ocipack.trust.policy import Policy
from ocipack.verify import verify

ALICE = key("alice")
POLICY = Policy((ALICE.public,))
ARTIFACT = content.artifact(b"what is delivered")
MOST = 60
"""More requests than one delivery makes."""


class Quiet:
    """A stage that nobody watches."""

    def say(self, text: str) -> None:
        """Say nothing."""


def watch(_: str) -> AbstractContextManager[Stage]:
    return nullcontext(Quiet())


def store_at(registry: Registry) -> tuple[Registries, Reference]:
    impatient = Patience(sleep=lambda _: None)
    reference = Reference.parse(f"{registry.name}/team/app:stable")
    return Registries(Transport(patience=impatient)), reference


def deliver(registry: Registry) -> None:
    registries, reference = store_at(registry)
    ship(
        registries.store(reference, writes=True),
        reference,
        pack=lambda: ARTIFACT,
        check=lambda _: Report(),
        signer=ALICE,
        policy=POLICY,
        watch=watch,
    )


def assert_nothing_half_done(registry: Registry) -> list[str]:
    """Hold every tag that `ship` gives to its promise; return those that are there."""
    kept = registry.repository("team/app")
    given = [name for name in kept.tags if name.startswith("stable")]
    for name in given:
        registries, _ = store_at(registry)
        at = Reference.parse(f"{registry.name}/team/app:{name}")
        proof = verify(registries.store(at), at, POLICY)
        assert proof.descriptor.digest == ARTIFACT.root.digest
        assert {str(part.digest) for part in ARTIFACT.manifest.children} <= kept.blobs
    if "stable" in given:
        assert len(given) == 2  # the immutable tag stands before the moving one
    return given


FAILURES = {
    "denied": (403, 1),
    "broken, once": (500, 1),
    "broken from then on": (500, 1_000_000),
    "reset from then on": (0, 1_000_000),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("referrers", [True, False])
def test_a_registry_that_fails_at_each_request_in_turn(failure: str, *, referrers: bool) -> None:
    for number in range(1, MOST):
        switches = Switches(referrers=referrers, fail_at=number)
        switches.fail_status, switches.fail_times = FAILURES[failure]
        with Registry(switches) as registry:
            with contextlib.suppress(OcipackError):
                deliver(registry)
            reached = len(registry.requests) >= number
            switches.fail_at = 0
            assert_nothing_half_done(registry)
            deliver(registry)
            assert len(assert_nothing_half_done(registry)) == 2
            sent = Counter(registry.received)
            assert sum(sent.values()) - len(sent) <= 1, f"request {number}: {sent}"
        if not reached:
            break
    assert 10 < number < MOST - 1


KILLS = 20


@pytest.mark.slow
def test_killed_at_random_moments(
    desk: Desk,
    server: Server,
    proxy: Proxy,
    keys: dict[str, str],
    repository: Repository,
    tmp_path: Path,
) -> None:
    site = tree(tmp_path / "site", filler=3 << 20)
    shipping = ("ship", str(site), "--key", f"{keys['alice']}.key", "--to")
    began = time.monotonic()
    proxy.begin("10ms")
    desk.ocipack(*shipping, f"oci://{proxy.host}/{repository.name}:stable").expect()
    whole, made = time.monotonic() - began, repository.digest("stable")
    dice = random.Random(20)
    early = 0
    for number in range(KILLS):
        there = Repository(repository.host, f"{repository.name}/{number}")
        command = (*shipping, f"oci://{proxy.host}/{there.name}:stable")
        proxy.begin("10ms")
        kill(desk, command, dice.uniform(0.1, 1) * whole)
        settle(proxy)
        # where nothing mounts, a repository that holds blobs alone says that it does not exist:
        # small ones are sent again rather than asked for
        least = 1 if server.mounts else 1 << 20
        before = uploaded(proxy, there.name, least)
        early += not assert_kept(there, made)

        proxy.begin()
        desk.ocipack(*command).expect()
        assert len(assert_kept(there, made)) == 2
        again = before & uploaded(proxy, there.name, least)
        assert not again, f"sent twice: {again}"
    assert early, "every run was over before it was killed"


def kill(desk: Desk, command: tuple[str, ...], after: float) -> None:
    """Run ocipack, and kill it in a while (seconds)."""
    # what measures coverage would leave half a database behind
    env = {name: value for name, value in desk.env().items() if not name.startswith("COVERAGE")}
    with (
        (desk.folder / "killed.log").open("wb") as log,
        subprocess.Popen(
            [*OCIPACK, *command], env=env, cwd=desk.folder, stdout=log, stderr=log
        ) as process,
    ):
        time.sleep(after)
        process.kill()


def settle(proxy: Proxy) -> None:
    """Wait for what was under way when its sender was killed: it may still be done.

    A tag that moves then has been moved by somebody else, as far as the next run can tell. What
    never ends was given up by the proxy.
    """
    until = time.monotonic() + 1
    while any(not one.status for one in proxy.seen()) and time.monotonic() < until:
        time.sleep(0.01)


def assert_kept(there: Repository, made: str) -> list[str]:
    """Hold every tag that `ship` gives to its promise; return those that are there."""
    given = [name for name in there.tags() if name.startswith("stable")]
    for name in given:
        assert there.digest(name) == made
        assert there.missing(name) == []
        assert there.forms(made) == (1, 1)
    assert "stable" not in given or len(given) == 2
    return given


def uploaded(proxy: Proxy, name: str, least: int = 1) -> Counter[str]:
    """Count how often each blob of a repository was sent, whole; those of `least` bytes or more."""
    return Counter(
        one.query.rpartition("digest=")[2]
        for one in proxy.seen()
        if one.path.startswith(f"/v2/{name}/blobs/uploads")
        and one.status == 201
        and one.sent >= least
        and "digest=" in one.query
    )
