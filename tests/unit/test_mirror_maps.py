"""What a mirror is to those who pull: each form as its readers want it."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import pytest
import yaml

from ocipack.errors import Misuse
from ocipack.mirror.maps import Pair, hosts_toml, idms, pairs, pin, registries_conf
from ocipack.mirror.model import Source
from ocipack.mirror.plan import Item
from ocipack.oci.reference import Reference
from ocipack.pin.mirrors import Mirrors


def ref(text: str) -> Reference:
    return Reference.parse(text)


def is_plain(registry: str) -> bool:
    return registry.startswith("127.0.0.1")


NGINX = Pair(ref("docker.io/library/nginx"), ref("m.example/m/docker.io/library/nginx"))
APP = Pair(ref("ghcr.io:5000/org/app"), ref("127.0.0.1:5001/org/app"))
FLAT = Pair(ref("quay.io/a/b"), ref("m.example/all"), flat=True)


def test_pin_asks_where_the_map_says() -> None:
    mirrors = Mirrors.parse(pin([NGINX, APP]).encode(), file="map.yaml")

    for pair in (NGINX, APP):
        source, target = (replace(one, tag="1") for one in (pair.source, pair.target))
        assert mirrors.where(source) == target
    assert str(mirrors.where(ref("docker.io/library/redis:1"))) == "docker.io/library/redis:1"


def test_containerd_puts_the_repository_behind_the_path_of_a_mirror() -> None:
    """containerd, docs/hosts.md: `override_path` means that the path is the whole of the root."""
    files = hosts_toml([NGINX, APP], is_plain)

    assert list(files) == ["docker.io/hosts.toml", "ghcr.io:5000/hosts.toml"]
    hub, own = (tomllib.loads(text) for text in files.values())
    assert hub == {
        "server": "https://registry-1.docker.io",
        "host": {
            "https://m.example/v2/m/docker.io": {
                "capabilities": ["pull", "resolve"],
                "override_path": True,
            }
        },
    }
    assert own == {
        "server": "https://ghcr.io:5000",
        "host": {"http://127.0.0.1:5001": {"capabilities": ["pull", "resolve"]}},
    }


def test_a_registry_with_several_places_has_each_of_them_once() -> None:
    other = Pair(ref("docker.io/library/redis"), ref("m.example/m/docker.io/library/redis"))
    third = Pair(ref("docker.io/org/app"), ref("x.example/org/app"))

    (text,) = hosts_toml([NGINX, other, third], is_plain).values()

    assert list(tomllib.loads(text)["host"]) == [
        *("https://m.example/v2/m/docker.io", "https://x.example")
    ]


@pytest.mark.parametrize(
    "pair", [FLAT, Pair(ref("quay.io/a/b"), ref("m.example/q-a/b")), replace(FLAT, flat=False)]
)
def test_containerd_cannot_be_told_of_another_name(pair: Pair) -> None:
    with pytest.raises(Misuse, match=r"quay\.io/a/b is m\.example/"):
        hosts_toml([NGINX, pair], is_plain)


def test_podman_and_crio() -> None:
    """containers-registries.conf(5): the longest prefix wins, mirrors are asked in order."""
    assert tomllib.loads(registries_conf([NGINX, APP, FLAT], is_plain)) == {
        "registry": [
            {
                "prefix": "docker.io/library/nginx",
                "location": "docker.io/library/nginx",
                "mirror": [{"location": "m.example/m/docker.io/library/nginx"}],
            },
            {
                "prefix": "ghcr.io:5000/org/app",
                "location": "ghcr.io:5000/org/app",
                "mirror": [{"location": "127.0.0.1:5001/org/app", "insecure": True}],
            },
            {
                "prefix": "quay.io/a/b",
                "location": "quay.io/a/b",
                "mirror": [{"location": "m.example/all", "pull-from-mirror": "digest-only"}],
            },
        ]
    }


def test_openshift() -> None:
    """config.openshift.io/v1, ImageDigestMirrorSet."""
    assert yaml.safe_load(idms([NGINX, FLAT])) == {
        "apiVersion": "config.openshift.io/v1",
        "kind": "ImageDigestMirrorSet",
        "metadata": {"name": "ocipack-mirror"},
        "spec": {
            "imageDigestMirrors": [
                {
                    "source": "docker.io/library/nginx",
                    "mirrors": ["m.example/m/docker.io/library/nginx"],
                },
                {"source": "quay.io/a/b", "mirrors": ["m.example/all"]},
            ]
        },
    }


def test_a_repository_has_one_place() -> None:
    source = Source("image", ref("quay.io/a/b"), tags=("1", "2"))
    items = [Item(source, "1", ref("m.example/b"), "1"), Item(source, "2", ref("m.example/b"), "2")]

    assert pairs(items) == [Pair(ref("quay.io/a/b"), ref("m.example/b"))]
    by_digest = [
        Item(source, "1", ref("m.example/b"), ""),
        Item(source, "", ref("m.example/b"), "x"),
    ]
    assert pairs(by_digest) == [Pair(ref("quay.io/a/b"), ref("m.example/b"), flat=True)]
    assert pairs([*by_digest, *items]) == pairs(items)
    with pytest.raises(Misuse, match=r"a/b goes to m\.example/b and to m\.example/c"):
        pairs([*items, Item(source, "3", ref("m.example/c"), "3")])
