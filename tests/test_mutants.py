"""The planted faults are up to date; planting them takes long and is `make mutants`."""

from __future__ import annotations

import mutants
import pytest


@pytest.mark.parametrize("name", mutants.names())
def test_every_fault_stands_in_one_place_and_has_its_tests(name: str) -> None:
    found = list(mutants.faults([name]))
    assert found
    assert not [str(fault) for fault in found if mutants.stale(fault)]
    assert all(fault.tests and fault.old != fault.new for fault in found)
