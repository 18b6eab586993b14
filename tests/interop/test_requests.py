"""How many requests each command makes of a real registry: counted, since each is a round trip.

The limits are (with the referrers API, without it). cosign 3 needs 12 (14) requests to sign with a
bundle, 14 to sign in the legacy form, and 7 (9) and 4 (5) to verify them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from interop.peers import Desk
from interop.servers import Proxy, Request, Server
from interop.trees import tree
from interop.wire import Repository

SIGN = {"bundle": (7, 11), "legacy": (10, 10), "both": (16, 20)}
AGAIN = {"bundle": (4, 5), "legacy": (2, 2), "both": (5, 6)}
VERIFY = {"bundle": (5, 6), "legacy": (3, 3), "both": (3, 3)}
SHIP, UNCHANGED, PUSH = (29, 33), 4, 6  # unchanged: the tag is asked again before it is said


def asked(desk: Desk, proxy: Proxy, *command: str) -> list[Request]:
    """Run ocipack and return what it asked."""
    proxy.begin()
    desk.ocipack(*command).expect()
    return proxy.seen()


def shown(requests: list[Request]) -> str:
    """Write requests one to a line, for whoever reads why a test failed."""
    return "\n".join(["", *map(str, requests)])


@pytest.mark.parametrize("form", SIGN)
def test_signing_and_verifying(
    desk: Desk,
    server: Server,
    proxy: Proxy,
    keys: dict[str, str],
    repository: Repository,
    form: str,
) -> None:
    column = 0 if server.has_referrers else 1
    there = Repository(proxy.host, repository.name)
    subject = there.put_image("counted", "v1")["digest"]
    pinned = f"{there.place}@{subject}"
    signing = ("sign", pinned, "--key", f"{keys['alice']}.key", "--format", form)
    for limits in (SIGN, AGAIN):
        requests = asked(desk, proxy, *signing)
        assert len(requests) <= limits[form][column], shown(requests)
    for place in (pinned, f"{there.place}:v1"):
        requests = asked(desk, proxy, "verify", place, "--key", f"{keys['alice']}.pub")
        assert len(requests) <= VERIFY[form][column], shown(requests)
        assert not [one for one in requests if one.method not in {"GET", "HEAD"}]
        lines = [(one.method, one.path) for one in requests]
        assert len(lines) == len(set(lines)), f"asked twice: {shown(requests)}"


def test_shipping(
    desk: Desk,
    server: Server,
    proxy: Proxy,
    keys: dict[str, str],
    repository: Repository,
    tmp_path: Path,
) -> None:
    place = f"oci://{proxy.host}/{repository.name}:v1"
    site = str(tree(tmp_path / "site"))
    shipping = ("ship", site, "--to", place, "--key", f"{keys['alice']}.key")
    first = asked(desk, proxy, *shipping)
    assert len(first) <= SHIP[0 if server.has_referrers else 1], shown(first)
    sent = [one.query for one in first if one.method == "PUT" and "digest=" in one.query]
    assert len(sent) == len({query.rpartition("digest=")[2] for query in sent}), shown(first)
    assert not [one for one in first if one.method == "HEAD" and "/blobs/" in one.path]

    again = asked(desk, proxy, *shipping)
    assert len(again) <= UNCHANGED, shown(again)
    assert {one.method for one in again} <= {"GET", "HEAD"}


def test_pushing(desk: Desk, proxy: Proxy, repository: Repository, tmp_path: Path) -> None:
    site = str(tree(tmp_path / "site"))
    place = f"oci://{proxy.host}/{repository.name}"
    requests = asked(desk, proxy, "pack", site, "--to", place)
    assert len(requests) <= PUSH, shown(requests)
