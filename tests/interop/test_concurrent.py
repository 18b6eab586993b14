"""Signers that do not know of each other lose no signature."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from interop.peers import Desk
from interop.wire import Repository

ROUNDS = 20

pytestmark = pytest.mark.interop("cosign2", "cosign3")


@pytest.mark.slow
def test_two_signers_at_once(desk: Desk, repository: Repository, keys: dict[str, str]) -> None:
    names = ("alice", "carol")

    def sign(name: str, target: str) -> None:
        desk.ocipack("sign", f"oci://{target}", "--key", f"{keys[name]}.key").expect()

    target = ""
    with ThreadPoolExecutor(len(names)) as pool:
        for number in range(ROUNDS):
            subject = repository.put_image(f"round {number}")["digest"]
            target = f"{repository}@{subject}"
            for _ in pool.map(sign, names, [target] * len(names)):
                pass
            assert repository.forms(subject) == (2, 2), f"round {number}"

    trusted = [part for name in names for part in ("--key", f"{keys[name]}.pub")]
    desk.ocipack("verify", f"oci://{target}", *trusted, "--threshold", "2").expect()
    for name in names:
        key = ("--key", f"{keys[name]}.pub")
        desk.cosign(3, "verify", *key, target).expect()
        desk.cosign(2, "verify", *key, "--trusted-root", desk.root, target).expect()
