"""What a run has to do: names at the target, collisions, shards, and what costs no request."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ocipack.errors import Misuse, NotFound, Rejected, Unavailable
from ocipack.mirror.model import Form, Mirror, Relocation, Rule, Selection, Source, glob
from ocipack.mirror.pattern import Pattern
from ocipack.mirror.plan import Plan, Shard, plan
from ocipack.mirror.relocate import repository
from ocipack.mirror.versions import Range
from ocipack.oci.digest import Digest
from ocipack.oci.reference import Reference

HEX = "b" * 64
NGINX = "docker.io/library/nginx"


def source(text: str, **more: Any) -> Source:
    return Source("image", Reference.parse(text), **more)


@dataclass
class World:
    """Repositories with tags; every question is noted."""

    tags: dict[str, list[str]] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def listing(self, repository: Reference) -> Iterable[str]:
        self.asked.append(f"list {repository}")
        if str(repository) not in self.tags:
            raise NotFound(f"{repository}: no such repository")
        return self.tags[str(repository)]

    def resolve(self, reference: Reference) -> Digest:
        self.asked.append(f"resolve {reference}")
        return Digest("sha256", self.digests.get(str(reference), HEX))

    def plan(self, *sources: Source, shard: Shard | None = None, **relocation: Any) -> Plan:
        relocation.setdefault("base", "mirror.example/m")
        return plan(
            Mirror(sources, Relocation(**relocation)),
            listing=self.listing,
            target_listing=self.listing,
            resolve=self.resolve,
            shard=shard or Shard(),
        )


def places(made: Plan) -> list[str]:
    return [item.identity for item in made.items]


@pytest.mark.parametrize(
    ("form", "place"),
    [
        ("full", "mirror.example/m/docker.io/library/nginx"),
        ("path", "mirror.example/m/library/nginx"),
        ("flat", "mirror.example/m"),
    ],
)
def test_three_forms_of_names(form: Form, place: str) -> None:
    relocation = Relocation("mirror.example/m", form)

    assert str(repository(relocation, source(f"{NGINX}:1"))) == place


def test_a_port_is_no_part_of_a_name() -> None:
    relocation = Relocation("mirror.example")

    found = repository(relocation, source("Reg.Example:5000/a:1"))

    assert str(found) == "mirror.example/reg.example-5000/a"
    assert str(repository(relocation, source("[::1]:5000/a:1"))) == "mirror.example/1-5000/a"


def test_the_longest_name_wins_and_only_whole_parts_count() -> None:
    relocation = Relocation(
        "m.example/all", names=(("ghcr.io", "m.example/g"), ("ghcr.io/org", "other.example"))
    )

    assert str(repository(relocation, source("ghcr.io/org/app:1"))) == "other.example/app"
    assert str(repository(relocation, source("ghcr.io/organ/app:1"))) == "m.example/g/organ/app"
    assert str(repository(relocation, source("quay.io/a:1"))) == "m.example/all/quay.io/a"


def test_a_pattern_comes_first_and_fits_the_whole_name() -> None:
    rules = (Rule(Pattern(r"quay\.io/(\w+)/(.+)"), "m.example/q-$1/$2"),)
    relocation = Relocation("m.example", names=(("quay.io", "x.example/q"),), rules=rules)

    assert str(repository(relocation, source("quay.io/a/b/c:1"))) == "m.example/q-a/b/c"
    assert str(repository(relocation, source("quay.io/a:1"))) == "x.example/q/a"


def test_a_source_says_itself_where_it_goes() -> None:
    one = source(f"{NGINX}:1", to=Reference.parse("m.example/web"))

    assert str(repository(Relocation(form="full"), one)) == "m.example/web"


@pytest.mark.parametrize(
    ("relocation", "words"),
    [
        (Relocation(), "nothing says where docker.io/library/nginx goes"),
        (Relocation(rules=(Rule(Pattern(".*"), "m.example/A"),)), "which is no name"),
        (Relocation(rules=(Rule(Pattern(".*"), "m.example/a:b"),)), "a repository is needed"),
        (Relocation(names=(("docker.io", "docker.io"),)), "onto itself"),
    ],
)
def test_names_that_cannot_be(relocation: Relocation, words: str) -> None:
    with pytest.raises(Misuse, match=words):
        repository(relocation, source(f"{NGINX}:1"))


@pytest.mark.parametrize(
    "bad", [{"form": "flat"}, {"form": "flat", "base": "m.example"}, {"base": "m.example/a:1"}]
)
def test_relocations_that_cannot_be(bad: dict[str, Any]) -> None:
    with pytest.raises(Misuse):
        Relocation(**bad)


def test_exact_names_never_list() -> None:
    world = World()

    made = world.plan(
        source(NGINX, tags=("1", "2")), source(f"{NGINX}@sha256:{HEX}"), source("quay.io/a:v1")
    )

    assert places(made) == [
        "mirror.example/m/docker.io/library/nginx:1",
        "mirror.example/m/docker.io/library/nginx:2",
        f"mirror.example/m/docker.io/library/nginx:sha256.{HEX}",
        "mirror.example/m/quay.io/a:v1",
    ]
    assert world.asked == []


def test_a_repository_is_listed_once_for_all_that_is_wanted_of_it() -> None:
    world = World({NGINX: ["1.0.0", "2.0.0"]})

    made = world.plan(
        source(NGINX, selection=Selection(versions=Range("^1"))),
        source(NGINX, selection=Selection(versions=Range("^2"))),
    )

    assert [item.tag for item in made.items] == ["1.0.0", "2.0.0"]
    assert world.asked == [f"list {NGINX}"]


def test_a_repository_that_cannot_be_listed_fails_alone() -> None:
    world = World({NGINX: ["1"]})
    every = Selection(Pattern(".*"))

    made = world.plan(source("gone.example/a", selection=every), source(NGINX, selection=every))

    assert [item.tag for item in made.items] == ["1"]
    ((failed, error),) = made.failed
    assert str(failed.bare) == "gone.example/a"
    assert isinstance(error, NotFound)
    assert "gone.example/a: its tags cannot be listed" in str(error)
    assert "give the tags themselves" in error.hint


def test_too_few_tags_fail_their_source_alone() -> None:
    world = World({NGINX: ["1"]})

    made = world.plan(
        source(NGINX, selection=Selection(Pattern(".*"), min_tags=2)), source("quay.io/a:v1")
    )

    assert [str(item.reference) for item in made.items] == ["quay.io/a:v1"]
    assert isinstance(made.failed[0][1], Rejected)


def test_two_sources_for_one_tag_are_refused_if_they_differ() -> None:
    world = World(digests={"quay.io/library/nginx:1": "c" * 64})

    with pytest.raises(Rejected, match=r"would be both docker.io/.*:1 and quay.io/.*:1"):
        world.plan(source(f"{NGINX}:1"), source("quay.io/library/nginx:1"), form="path")


def test_two_sources_for_one_tag_are_one_if_they_are_the_same() -> None:
    world = World()

    made = world.plan(source(f"{NGINX}:1"), source("quay.io/library/nginx:1"), form="path")

    assert [str(item.reference) for item in made.items] == [f"{NGINX}:1"]
    assert world.asked == [f"resolve {NGINX}:1", "resolve quay.io/library/nginx:1"]


def test_a_collision_that_cannot_be_looked_into_ends_the_run() -> None:
    def resolve(_: Reference) -> Digest:
        raise Unavailable("no answer")

    world = World()
    world.resolve = resolve  # type: ignore[method-assign,assignment]  # a world without answers

    with pytest.raises(Unavailable):
        world.plan(source(f"{NGINX}:1"), source("quay.io/library/nginx:1"), form="path")


def test_a_registry_is_the_same_in_any_case() -> None:
    world = World(digests={"quay.io/b:1": "c" * 64})
    one = source("quay.io/a:1", to=Reference.parse("M.example/x"))
    other = source("quay.io/b:1", to=Reference.parse("m.EXAMPLE/x"))

    with pytest.raises(Rejected, match="would be both"):
        world.plan(one, other)
    with pytest.raises(Misuse, match="onto itself"):
        world.plan(source("Quay.io/a:1", to=Reference.parse("quay.IO/a")))


def test_what_is_asked_for_twice_is_done_once() -> None:
    made = World().plan(source(f"{NGINX}:1"), source(NGINX, tags=("1", "2")))

    assert [item.tag for item in made.items] == ["1", "2"]


def test_flat_items_differ_by_what_they_are() -> None:
    made = World().plan(
        source(f"{NGINX}:1"), source(f"quay.io/a:1@sha256:{HEX}"), base="m.example/all", form="flat"
    )

    assert [(str(item.target), item.name) for item in made.items] == [
        ("m.example/all", ""),
        ("m.example/all", f"sha256.{HEX}"),
    ]


def test_tags_that_never_move_and_are_there_are_settled() -> None:
    there = "mirror.example/m/docker.io/library/nginx"
    world = World({there: ["v1", "latest"]})

    made = world.plan(source(NGINX, tags=("v1", "v2", "latest"), immutable=glob("v*")))

    assert [(item.name, item.settled) for item in made.items] == [
        *(("v1", True), ("v2", False), ("latest", False))
    ]
    assert world.asked == [f"list {there}"]


def test_a_target_that_cannot_be_listed_is_asked_for_each_tag() -> None:
    made = World().plan(source(NGINX, tags=("v1",), immutable=glob("v*")))

    assert [item.settled for item in made.items] == [False]


@given(st.integers(1, 7), st.integers(1, 60))
def test_shards_are_disjoint_and_all_of_it(count: int, tags: int) -> None:
    one = source(NGINX, tags=tuple(f"v{number}" for number in range(tags)))
    whole = places(World().plan(one))

    parts = [places(World().plan(one, shard=Shard(index, count))) for index in range(count)]

    assert sorted(name for part in parts for name in part) == sorted(whole)


def test_a_shard_does_not_depend_on_what_else_is_asked_for() -> None:
    one, other = source(NGINX, tags=tuple("abcdefgh")), source("quay.io/a", tags=tuple("abcdefgh"))
    alone = set(places(World().plan(one, shard=Shard(1, 3))))

    together = set(places(World().plan(other, one, shard=Shard(1, 3))))

    assert alone <= together
    assert 0 < len(alone) < 8


def test_every_shard_sees_a_collision() -> None:
    world = World(digests={"quay.io/library/nginx:1": "c" * 64})
    for index in range(3):
        with pytest.raises(Rejected):
            world.plan(
                *(source(f"{NGINX}:1"), source("quay.io/library/nginx:1")),
                form="path",
                shard=Shard(index, 3),
            )


@pytest.mark.parametrize("text", ["", "1", "4/4", "-1/4", "0/0", "a/b", "1/2/3", "0/" + "9" * 30])
def test_parts_that_there_are_not(text: str) -> None:
    with pytest.raises(Misuse):
        Shard.parse(text)


def test_parts_count_from_zero() -> None:
    assert Shard.parse("3/4") == Shard(3, 4)
