"""The derived data: versions, lives of APIs, scopes; facts from the Kubernetes changelogs."""

from __future__ import annotations

import json
import re

import jsonschema_rs
import pytest

from ocipack.errors import Misuse
from ocipack.k8s.schemas.catalog import Catalog, time_zones, versions
from ocipack.validate.formats import ALL

MINORS = [f"1.{minor}" for minor in range(25, 38)]


def test_versions() -> None:
    assert list(versions()) == MINORS
    assert Catalog.of().version == "1.37"


@pytest.mark.parametrize("text", ["1.31", "v1.31", "1.31.4", "v1.31.0-rc.1", "1.31.2+k3s1"])
def test_versions_are_read_as_people_write_them(text: str) -> None:
    assert Catalog.of(text).version == "1.31"


@pytest.mark.parametrize("text", ["1.24", "1.38", "2.0", "latest", "1", "1.31.x"])
def test_other_versions_are_misuse(text: str) -> None:
    with pytest.raises(Misuse):
        Catalog.of(text)


@pytest.mark.parametrize(
    ("api", "kind", "last", "instead"),
    [
        ("autoscaling/v2beta2", "HorizontalPodAutoscaler", "1.25", "autoscaling/v2"),
        (
            "flowcontrol.apiserver.k8s.io/v1beta1",
            "FlowSchema",
            "1.25",
            "flowcontrol.apiserver.k8s.io/v1beta3",
        ),
        (
            "flowcontrol.apiserver.k8s.io/v1beta3",
            "FlowSchema",
            "1.31",
            "flowcontrol.apiserver.k8s.io/v1",
        ),
        ("storage.k8s.io/v1beta1", "CSIStorageCapacity", "1.26", "storage.k8s.io/v1"),
    ],
)
def test_removed_apis(api: str, kind: str, last: str, instead: str) -> None:
    after = MINORS[MINORS.index(last) + 1]
    assert Catalog.of(last).find(api, kind)
    assert not Catalog.of(after).find(api, kind)
    life = Catalog.of(after).life(api, kind)
    assert life
    assert (life.removed, life.instead) == (after, instead)


@pytest.mark.parametrize(
    ("api", "kind", "removed"),
    [
        ("extensions/v1beta1", "Ingress", "1.22"),
        ("policy/v1beta1", "PodSecurityPolicy", "1.25"),
        ("batch/v1beta1", "CronJob", "1.25"),
        ("apps/v1beta2", "Deployment", "1.16"),
    ],
)
def test_apis_removed_before_the_oldest_version(api: str, kind: str, removed: str) -> None:
    life = Catalog.of("1.25").life(api, kind)
    assert life
    assert life.removed == removed


@pytest.mark.parametrize(
    ("group", "kind", "namespaced"),
    [
        ("", "Pod", True),
        ("", "Namespace", False),
        ("apps", "Deployment", True),
        ("rbac.authorization.k8s.io", "Role", True),
        ("rbac.authorization.k8s.io", "ClusterRole", False),
        ("storage.k8s.io", "StorageClass", False),
        ("storage.k8s.io", "CSIStorageCapacity", True),
        ("networking.k8s.io", "IngressClass", False),
        ("apiextensions.k8s.io", "CustomResourceDefinition", False),
    ],
)
def test_scope(group: str, kind: str, namespaced: bool) -> None:  # noqa: FBT001 - a table
    assert Catalog.namespaced(group, kind) is namespaced


@pytest.mark.parametrize("version", ["1.25", "1.31", "1.37"])
def test_every_kind_compiles_and_every_format_is_known(version: str) -> None:
    catalog = Catalog.of(version)
    kinds = [(api, kind) for api in catalog.api_versions() for kind in catalog.served(api)]
    assert len(kinds) > 50
    for api, kind in kinds:
        text = catalog.document(catalog.find(api, kind))
        jsonschema_rs.Draft202012Validator(json.loads(text))
        assert set(re.findall(r'"format":"([^"]+)"', text)) <= ALL.keys()


def test_nothing_that_is_no_object_is_a_kind() -> None:
    catalog = Catalog.of()
    kinds = {kind for api in catalog.api_versions() for kind in catalog.served(api)}
    assert not kinds & {"Status", "DeleteOptions", "Scale", "APIGroup", "ConfigMapList"}
    assert {"Pod", "Deployment", "CronJob", "NetworkPolicy", "CustomResourceDefinition"} <= kinds


def test_time_zones() -> None:
    assert {"Europe/Rome", "America/Argentina/Ushuaia"} <= time_zones()
    assert "Local" not in time_zones()
