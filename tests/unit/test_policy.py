"""A policy that could be read two ways is none."""

from __future__ import annotations

import pytest
from world import key, published

from ocipack.errors import Misuse, Rejected
from ocipack.trust.keys import PublicKey
from ocipack.trust.policy import Policy

ALICE, BOB = key("alice").public, key("bob").public


def test_silence_is_no_policy() -> None:
    with pytest.raises(Misuse, match="without keys"):
        Policy(())


@pytest.mark.parametrize("threshold", [0, -1, 3])
def test_a_threshold_must_be_possible(threshold: int) -> None:
    with pytest.raises(Misuse, match="cannot be asked of 2 different keys"):
        Policy((ALICE, BOB), threshold)


def test_a_key_given_twice_is_one_key() -> None:
    assert Policy((ALICE, ALICE)).keys == (ALICE,)
    with pytest.raises(Misuse, match=r"1 different key$"):
        Policy((ALICE, PublicKey.parse(ALICE.pem)), 2)


def test_published_keys_are_refused_unless_told() -> None:
    with pytest.raises(Rejected, match="is an example") as caught:
        Policy((ALICE, published("alice")))
    assert caught.value.exit_code == 1
    assert Policy((published("alice"),), allow_example_keys=True).keys


def test_too_many_keys() -> None:
    keys = tuple(key(f"number {i}").public for i in range(65))
    assert Policy(keys[:64]).keys
    with pytest.raises(Misuse, match="at most 64"):
        Policy(keys)
