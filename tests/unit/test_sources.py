"""Addresses that controllers fetch from: one spelling each, and globs that cover them."""

from __future__ import annotations

from typing import Any

import pytest

from ocipack.errors import Misuse
from ocipack.flux.sources import Address, Link, fetches, links
from ocipack.trust.policy.places import SourceGlob

DIGEST = "sha256:" + "a" * 64
COMMIT = "b" * 40

SPELLINGS = [
    ("https://github.com/org/repo", "https://github.com/org/repo"),
    ("https://GitHub.com/org/repo.git", "https://github.com/org/repo"),
    ("HTTPS://github.com:443/org/repo/", "https://github.com/org/repo"),
    ("https://github.com:0443/org/repo", "https://github.com/org/repo"),
    ("https://github.com:8443/org/repo", "https://github.com:8443/org/repo"),
    ("http://git.example:80/a", "http://git.example/a"),
    ("http://git.example:443/a", "http://git.example:443/a"),
    ("ssh://git@github.com:22/org/repo.git", "ssh://github.com/org/repo"),
    ("oci://index.docker.io/org/chart", "oci://docker.io/org/chart"),
    ("oci://registry-1.docker.io/org/chart", "oci://docker.io/org/chart"),
    ("oci://ghcr.io", "oci://ghcr.io"),
    ("https://[2001:DB8::1]:8443/x", "https://[2001:db8::1]:8443/x"),
    ("https://trusted.example@evil.example/x", "https://evil.example/x"),
]

NO_ADDRESS = [
    "",
    "github.com/org/repo",
    "git@github.com:org/repo",
    "ftp://example.com/x",
    "file:///etc/passwd",
    "https://user:secret@example.com/x",
    "https://example.com/a/../b",
    "https://example.com/./b",
    "https://example.com/a//b",
    "https://example.com/a?ref=main",
    "https://example.com/a#b",
    "https://example.com/%2e%2e/b",
    "https://example.com\\@evil.example/x",
    "https://example.com/a b",
    "https://exаmple.com/x",  # noqa: RUF001 - a Cyrillic letter is the point
    "https://example.com./x",
    "https://example.com/x\n",
    "https:///x",
    "https://${HOST}/x",
]


@pytest.mark.parametrize(("text", "plain"), SPELLINGS)
def test_one_place_has_one_spelling(text: str, plain: str) -> None:
    assert str(Address.parse(text)) == plain


@pytest.mark.parametrize("text", NO_ADDRESS)
def test_what_two_readers_could_take_for_two_places_is_no_address(text: str) -> None:
    with pytest.raises(Misuse, match="not a plain address"):
        Address.parse(text)


GLOBS = [
    ("**", "https://anywhere.example/x", True),
    ("https://github.com/org/*", "https://github.com/org/repo", True),
    ("https://github.com/org/*", "https://github.com/org/repo.git", True),
    ("https://github.com/org/*.git", "https://github.com/org/repo", True),
    ("https://github.com/org/*", "https://github.com/org/a/b", False),
    ("https://github.com/org/**", "https://github.com/org/a/b", True),
    ("https://github.com/org/**", "https://github.com/org", False),
    ("https://github.com/org/**", "https://github.com/organisation/a", False),
    ("https://github.com/org/*", "http://github.com/org/repo", False),
    ("https://github.com/org/*", "ssh://git@github.com/org/repo", False),
    ("https://*.example.com/a", "https://git.example.com/a", True),
    ("https://*.example.com/a", "https://a.git.example.com/a", False),
    ("https://*.example.com/a", "https://git.example.com:8443/a", False),
    ("https://*.example.com:443/a", "https://git.example.com/a", True),
    ("https://*.example.com:8443/a", "https://git.example.com:8443/a", True),
    ("oci://index.docker.io/org/*", "oci://docker.io/org/chart", True),
    ("oci://GHCR.io/org/*", "oci://ghcr.io/org/chart", True),
    ("https://github.com/org/**/deploy", "https://github.com/org/a/b/deploy", True),
]


@pytest.mark.parametrize(("glob", "address", "covers"), GLOBS)
def test_a_glob_covers(glob: str, address: str, covers: bool) -> None:  # noqa: FBT001 - a table
    assert SourceGlob(glob).covers(Address.parse(address)) is covers


@pytest.mark.parametrize(
    "text",
    [
        *("", "*", "github.com/org", "https://github.com", "https://**/x", "ftp://a.example/x"),
        *("https://a.example/x**", "https://a.example/../x", "https://a.example/", "x" * 501),
        *("https://a.example/x?y", "https://us er/x", "https://*.example.com:x/a"),
    ],
)
def test_what_is_no_glob_of_sources(text: str) -> None:
    with pytest.raises(Misuse):
        SourceGlob(text)


def source(kind: str, spec: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    return "source.toolkit.fluxcd.io", kind, {"spec": spec}


def argo(**one: Any) -> tuple[str, str, dict[str, Any]]:
    return "argoproj.io", "Application", {"spec": {"source": one}}


OCI = "oci://ghcr.io/org/chart"
GIT = "https://github.com/org/repo"
PINNED = [
    (source("OCIRepository", {"url": OCI, "ref": {"digest": DIGEST}}), OCI, True),
    (source("OCIRepository", {"url": OCI, "ref": {"tag": "1", "digest": DIGEST}}), OCI, True),
    (source("OCIRepository", {"url": OCI, "ref": {"semver": ">1", "digest": DIGEST}}), OCI, True),
    (source("OCIRepository", {"url": OCI, "ref": {"tag": "1.0.0"}}), OCI, False),
    (source("OCIRepository", {"url": OCI, "ref": {"semver": "1.x"}}), OCI, False),
    (source("OCIRepository", {"url": OCI}), OCI, False),
    (source("OCIRepository", {"url": "https://ghcr.io/x", "ref": {"digest": DIGEST}}), None, False),
    (source("OCIRepository", {"url": ["x"], "ref": "y"}), None, False),
    (source("GitRepository", {"url": GIT, "ref": {"commit": COMMIT}}), GIT, True),
    (source("GitRepository", {"url": GIT, "ref": {"commit": COMMIT, "branch": "m"}}), GIT, True),
    (source("GitRepository", {"url": GIT, "ref": {"commit": "b" * 64}}), GIT, True),
    (source("GitRepository", {"url": GIT, "ref": {"commit": "b" * 7}}), GIT, False),
    (source("GitRepository", {"url": GIT, "ref": {"commit": "B" * 40}}), GIT, False),
    (source("GitRepository", {"url": GIT, "ref": {"tag": "v1"}}), GIT, False),
    (source("GitRepository", {"url": GIT, "ref": {"name": "refs/heads/main"}}), GIT, False),
    (source("GitRepository", {"url": GIT}), GIT, False),
    (
        source("HelmRepository", {"url": "https://charts.example/x"}),
        "https://charts.example/x",
        True,
    ),
    (source("HelmRepository", {"url": OCI, "type": "oci"}), OCI, True),
    (
        source("Bucket", {"endpoint": "s3.example", "bucketName": "b"}),
        "https://s3.example/b",
        False,
    ),
    (
        source("Bucket", {"endpoint": "s3.example", "bucketName": "b", "insecure": True}),
        "http://s3.example/b",
        False,
    ),
    (source("HelmChart", {"chart": "app", "version": "1.2.3"}), None, True),
    (source("HelmChart", {"chart": "app", "version": "v1.2.3-rc.1+x"}), None, True),
    *(
        (source("HelmChart", {"chart": "app", "version": said}), None, False)
        for said in (
            "1.2",
            "1.x",
            "*",
            ">=1.0.0",
            "^1.2.3",
            "~1.2.3",
            "1.2.3 - 2",
            "",
            1.2,
            "=1.2.3",
        )
    ),
    (source("HelmChart", {"chart": "app"}), None, False),
    (source("HelmChart", {"chart": "./c", "sourceRef": {"kind": "GitRepository"}}), None, True),
    (argo(repoURL=GIT, targetRevision=COMMIT), GIT, True),
    (argo(repoURL=GIT, targetRevision="HEAD"), GIT, False),
    (argo(repoURL=GIT), GIT, False),
    (argo(repoURL="git@github.com:org/repo.git"), "ssh://github.com/org/repo", False),
    (
        argo(repoURL="https://c.example/s", chart="a", targetRevision="1.2.3"),
        "https://c.example/s",
        True,
    ),
    (
        argo(repoURL="https://c.example/s", chart="a", targetRevision="1.*"),
        "https://c.example/s",
        False,
    ),
    (argo(repoURL="ghcr.io/org", chart="a", targetRevision="1.2.3"), "oci://ghcr.io/org", True),
    (argo(repoURL=OCI, targetRevision=DIGEST), OCI, True),
    (argo(repoURL=OCI, targetRevision="1.0.0"), OCI, False),
    (argo(repoURL="{{repo}}", targetRevision=COMMIT), None, True),
]


@pytest.mark.parametrize(("found", "address", "pinned"), PINNED)
def test_what_fixes_a_source(
    found: tuple[str, str, dict[str, Any]],
    address: str | None,
    pinned: bool,  # noqa: FBT001 - a table
) -> None:
    [fetch] = fetches(*found)
    assert (str(fetch.address) if fetch.address else None) == address
    assert fetch.pinned is pinned
    charts = found[1] == "HelmChart"
    assert bool(fetch.reason) is (address is None and not charts)
    if found[1] == "OCIRepository" and pinned:
        assert fetch.reference is not None
        assert str(fetch.reference.digest) == DIGEST


@pytest.mark.parametrize(
    ("ref", "reference", "ranges"),
    [
        ({"tag": "1.0.0"}, "ghcr.io/org/chart:1.0.0", False),
        ({}, "ghcr.io/org/chart:latest", False),
        ({"semver": "1.x"}, "ghcr.io/org/chart", True),
        ({"semver": "1.2.3", "tag": "1.0.0"}, "ghcr.io/org/chart", True),
        ({"semver": ">=1.0.0"}, "ghcr.io/org/chart", True),
        ({"tag": "${CHANNEL:=stable}"}, "ghcr.io/org/chart", True),
        ({"semver": ">=1.0.0", "digest": DIGEST}, f"ghcr.io/org/chart@{DIGEST}", False),
    ],
)
def test_what_an_artifact_is_called(
    ref: dict[str, str],
    reference: str,
    ranges: bool,  # noqa: FBT001 - a table
) -> None:
    [fetch] = fetches(*source("OCIRepository", {"url": OCI, "ref": ref}))
    assert (str(fetch.reference), fetch.ranges) == (reference, ranges)


@pytest.mark.parametrize(
    ("version", "ranges"),
    [("1.2.3", False), ("stable", False), ("1.x", True), ("1", True), (">=1", True), ("", False)],
)
def test_what_argo_looks_up(version: str, ranges: bool) -> None:  # noqa: FBT001 - a table
    [fetch] = fetches(*argo(repoURL=OCI, targetRevision=version))
    assert fetch.ranges is ranges


def test_a_malformed_digest_is_none() -> None:
    [fetch] = fetches(*source("OCIRepository", {"url": OCI, "ref": {"digest": "sha256:abc"}}))
    assert not fetch.pinned
    assert fetch.reason == "not a digest: 'sha256:abc'"


def test_several_sources_of_applications() -> None:
    sources = [{"repoURL": GIT, "targetRevision": COMMIT}, {"repoURL": GIT}, "junk"]
    found = list(fetches("argoproj.io", "Application", {"spec": {"sources": sources}}))
    assert [one.pinned for one in found] == [True, False]
    inner = {"spec": {"template": {"spec": {"source": sources[1]}}}}
    [one] = fetches("argoproj.io", "ApplicationSet", inner)
    assert (one.path, one.pinned) == (("spec", "template", "spec", "source", "repoURL"), False)


def test_what_leans_on_a_source() -> None:
    repository = {"kind": "HelmRepository", "name": "stable", "namespace": "charts"}
    release = {
        "metadata": {"name": "r", "namespace": "apps"},
        "spec": {
            "chart": {"spec": {"sourceRef": repository}},
            "chartRef": {"kind": "OCIRepository", "name": "app"},
        },
    }
    found = set(links("helm.toolkit.fluxcd.io", "HelmRelease", release))
    assert found == {
        Link("HelmRepository", "charts", "stable"),
        Link("OCIRepository", "apps", "app"),
    }
    assert not list(links("", "ConfigMap", release))
    assert not list(fetches("", "ConfigMap", release))
