"""An API server with all of Flux's definitions says what `vectors/validation/flux.json` says.

    pytest tests/interop/flux_verdicts.py

A run of its own, as `real_flux.py` is. The objects are sent as Flux sends them: server-side apply,
here as a dry run, with strict field validation.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from answers import Case, flux_cases
from interop.cluster import Cluster, cluster, definitions

SCRIPT = Path(__file__).parents[2] / "scripts" / "make_flux_schemas.py"


def modules() -> list[tuple[str, str]]:
    """Module, without its host and owner, and version of each controller."""
    spec = importlib.util.spec_from_file_location("make_flux_schemas", SCRIPT)
    assert spec
    assert spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    named = [name.removeprefix("github.com/fluxcd/").split("@") for name in script.MODULES]
    return [(module, version) for module, version in named]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """An API server that serves Flux's kinds."""
    with cluster(tmp_path_factory.mktemp("cluster")) as running:
        for name, version in modules():
            folder = str(definitions(name, version))
            running.kubectl("apply", "--server-side", "--force-conflicts", "-f", folder)
        running.kubectl("wait", "--for=condition=Established", "crd", "--all")
        yield running


@pytest.mark.parametrize("case", flux_cases(), ids=lambda case: case.id)
@pytest.mark.interop("kube-apiserver", "etcd", "source-controller", "kustomize-controller")
def test_the_server_says_what_was_recorded(server: Cluster, case: Case) -> None:
    strict = ("--server-side", "--dry-run=server", "--validate=strict", "-f", "-")
    if not case.refused:
        server.kubectl("apply", *strict, text=json.dumps(case.value))
        return
    with pytest.raises(AssertionError) as refusal:
        server.kubectl("apply", *strict, text=json.dumps(case.value))
    assert all(field in str(refusal.value) for field in case.fields)
