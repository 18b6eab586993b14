"""Which names a glob covers: a table of references that look alike and are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ocipack.errors import Misuse
from ocipack.oci.reference import Reference
from ocipack.trust.policy.conditions import Condition
from ocipack.trust.policy.names import Glob

D = "sha256:" + "ab" * 32
OTHER = "sha256:" + "cd" * 32

TABLE: list[tuple[str, str, bool]] = [
    # hosts
    ("registry.example.com/team/app", "registry.example.com/team/app:v1", True),
    ("registry.example.com/team/app", "registry.example.com.evil.org/team/app:v1", False),
    ("registry.example.com/team/app", "evil-registry.example.com/team/app:v1", False),
    ("registry.example.com/team/app", "registry-example.com/team/app:v1", False),
    ("registry.example.com/team/app", "registry.example.com:5000/team/app:v1", False),
    ("registry.example.com:5000/team/app", "registry.example.com/team/app:v1", False),
    ("registry.example.com:5000/team/app", "registry.example.com:5000/team/app", True),
    ("registry.example.com/team/app", "Registry.EXAMPLE.com/team/app:v1", True),
    ("registry.example.com/team/app", "registry.example.com:443/team/app:v1", True),
    ("registry.example.com/team/app", "registry.example.com:00443/team/app:v1", True),
    ("registry.example.com:443/team/app", "registry.example.com/team/app:v1", True),
    ("*.example.com/team/app", "a.example.com/team/app", True),
    ("*.example.com/team/app", "example.com/team/app", False),
    ("*.example.com/team/app", "a.b.example.com/team/app", False),
    ("*.example.com/team/app", "evil.org:1/x.example.com/team/app", False),
    ("*.example.com/team/app", "a.example.com:5000/team/app", False),
    ("localhost/site", "localhost/site:v1", True),
    ("localhost/site", "localhost:5000/site:v1", False),
    ("[::1]:5000/app", "[::1]:5000/app:v1", True),
    ("[::1]:5000/app", "[0:0:0:0:0:0:0:1]:5000/app:v1", True),
    ("[0::1]:5000/app", "[::1]:5000/app:v1", True),
    ("[::1]:5000/app", "[::2]:5000/app:v1", False),
    # Docker Hub has many spellings
    ("docker.io/library/nginx", "docker.io/library/nginx:1", True),
    ("docker.io/library/nginx", "index.docker.io/library/nginx:1", True),
    ("docker.io/library/nginx", "registry-1.docker.io/library/nginx:1", True),
    ("docker.io/library/nginx", "docker.io/nginx:1", True),
    ("index.docker.io/nginx", "docker.io/library/nginx:1", True),
    ("docker.io/nginx", "docker.io/team/nginx:1", False),
    ("docker.io/*", "docker.io/nginx:1", True),
    ("docker.io/*", "docker.io/team/nginx:1", False),
    ("docker.io/**", "docker.io/team/nginx:1", True),
    ("docker.io/**", "docker.io/nginx:1", True),
    # repositories
    ("r.example.com/team/*", "r.example.com/team/app:v1", True),
    ("r.example.com/team/*", "r.example.com/team/app/db:v1", False),
    ("r.example.com/team/*", "r.example.com/team-b/app:v1", False),
    ("r.example.com/team/**", "r.example.com/team/app/db:v1", True),
    ("r.example.com/team/**", "r.example.com/team:v1", False),
    ("r.example.com/team/**", "r.example.com/teams/app:v1", False),
    ("r.example.com/**", "r.example.com/app", True),
    ("r.example.com/**/app", "r.example.com/app", True),
    ("r.example.com/**/app", "r.example.com/a/b/app", True),
    ("r.example.com/**/app", "r.example.com/a/b/my-app", False),
    ("r.example.com/team/app", "r.example.com/team/app2:v1", False),
    ("r.example.com/team/app*", "r.example.com/team/app2:v1", True),
    ("r.example.com/team/app*", "r.example.com/team/app/x:v1", False),
    ("r.example.com/team.a/app", "r.example.com/team-a/app", False),
    # tags and digests
    ("r.example.com/app:v1", "r.example.com/app:v1", True),
    ("r.example.com/app:v1", "r.example.com/app:v10", False),
    ("r.example.com/app:v1", f"r.example.com/app:v1@{D}", True),
    ("r.example.com/app:v1", f"r.example.com/app@{D}", False),
    ("r.example.com/app:v1.*", "r.example.com/app:v1.2", True),
    ("r.example.com/app:v1.*", "r.example.com/app:v1x2", False),
    ("r.example.com/app:*", "r.example.com/app:v1", True),
    ("r.example.com/app:*", f"r.example.com/app@{D}", False),
    ("r.example.com/app:latest", "r.example.com/app", True),
    ("r.example.com/app", f"r.example.com/app@{D}", True),
    (f"r.example.com/app@{D}", f"r.example.com/app:v1@{D}", True),
    (f"r.example.com/app@{D}", f"r.example.com/app:v1@{OTHER}", False),
    (f"r.example.com/app@{D}", "r.example.com/app:v1", False),
    # everything
    ("**", "r.example.com/app", True),
    ("**", f"localhost/site@{D}", True),
]


@pytest.mark.parametrize(("glob", "name", "covered"), TABLE)
def test_what_is_covered(glob: str, name: str, covered: bool) -> None:  # noqa: FBT001 - a table
    assert Glob(glob).covers(Reference.parse(name)) is covered


@pytest.mark.parametrize(
    "text",
    [
        *("", "*", "app", "team/app", "**/app", "*/app", "https://r.example.com/app"),
        *("r.example.com", "r.example.com/", "/app", "r.example.com//app", "r.example.com/App"),
        *("**.example.com/app", "r.example.com:*/app", "r.example.com/a**", "r.example.com/a**/b"),
        *("r.example.com/app?", "r.example.com/[ab]", "r.example.com/{a,b}", "r.example.com/app:"),
        *("r.example.com/app@sha256:ab", "r.example.com/app\n", "r.example.com/a b", "x" * 501),
        *("r.example.com/app:v1:v2", f"r.example.com/app@{D}@{D}", "[::1/app", "r.example.com/*:"),
    ],
)
def test_what_is_no_glob(text: str) -> None:
    with pytest.raises(Misuse):
        Glob(text)


def test_no_name_takes_long() -> None:
    """Each of these would keep a reader that tries all ways busy for longer than anyone waits."""
    name = Reference.parse("r.example.com/" + "a" * 250)
    assert not Glob("r.example.com/" + "*a" * 100 + "b").covers(name)
    assert Glob("r.example.com/" + "*a" * 100).covers(name)
    deep = Reference.parse("r.example.com/" + "/".join("a" * 120))
    assert not Glob("r.example.com/" + "**/" * 60 + "b").covers(deep)
    assert Glob("r.example.com/" + "**/" * 60 + "a").covers(deep)
    assert not Glob("**a" * 60 + "b", foreign=True).covers(name)
    assert not Condition("like", "*a" * 100 + "b").holds("a" * 4000)


REAL = json.loads(
    (Path(__file__).parents[1] / "vectors" / "cluster_image_policy_globs.json").read_text()
)
DIFFER = {  # docs/policy.md, "ClusterImagePolicy": spellings of one registry are one name for us
    ("*/*", "localhost/app:v1"): False,
    ("index.docker.io/**", "localhost/app:v1"): False,
    ("docker.io/library/*", "index.docker.io/library/nginx:1"): True,
    ("R.example.com/app:*", "r.example.com/app:v1"): True,
    ("R.example.com/app:*", "r.example.com/app"): True,
    ("R.example.com/app:*", f"r.example.com/app:v1@{D}"): True,
}


def test_the_other_dialect_agrees_with_the_program_that_it_is_made_for() -> None:
    found = {
        (glob, name): Glob(glob, foreign=True).covers(Reference.parse(name))
        for glob in REAL["covered"]
        for name in REAL["names"]
    }
    theirs = {(glob, name): name in REAL["covered"][glob] for glob, name in found}
    assert len(found) == 435
    assert {pair: ours for pair, ours in found.items() if ours is not theirs[pair]} == DIFFER


FOREIGN: list[tuple[str, str, bool]] = [  # as sigstore/policy-controller's pkg/apis/glob decides
    ("r.example.com/app*", "r.example.com/app:v1", True),
    ("r.example.com/app*", "r.example.com/apple:v1", True),
    ("r.example.com/app", "r.example.com/app:v1", False),
    ("r.example.com/app:*", "r.example.com/app:v1", True),
    ("r.example.com/app:*", "r.example.com/app", True),
    ("r.example.com/app:*", f"r.example.com/app@{D}", False),
    ("r.example.com/app:*", f"r.example.com/app:v1@{D}", True),
    ("r.example.com/app@*", f"r.example.com/app@{D}", False),
    ("r.example.com/**", "r.example.com/a/b/c:v1", True),
    ("r.example.com/*", "r.example.com/a/b:v1", False),
    ("**", "r.example.com/a/b:v1", True),
    ("*", "docker.io/library/nginx:1", True),
    ("*", "docker.io/team/nginx:1", False),
    ("*", "r.example.com/app:1", False),
    ("*/*", "docker.io/team/nginx:1", True),
    ("*/*", "r.example.com/app:1", False),
    ("index.docker.io/library/*", "docker.io/library/nginx", True),
    ("docker.io/library/*", "docker.io/library/nginx", True),
    ("r.example.com/a.b*", "r.example.com/axb:v1", False),
    ("R.example.com/app:*", "r.EXAMPLE.com/app:v1", True),
]


@pytest.mark.parametrize(("glob", "name", "covered"), FOREIGN)
def test_the_dialect_of_cluster_image_policies(glob: str, name: str, covered: bool) -> None:  # noqa: FBT001 - a table
    if "@" in glob:
        with pytest.raises(Misuse):
            Glob(glob, foreign=True)
        return
    assert Glob(glob, foreign=True).covers(Reference.parse(name)) is covered
