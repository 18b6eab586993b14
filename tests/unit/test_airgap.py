"""Archives across an air gap: what goes in, what is read, what is refused, what is loaded."""

from __future__ import annotations

import hashlib
import json
import random
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tars
from airgaps import ANYTHING, BUNDLE, SIGNS, Team, attach, contents, had, proof, wanted, write
from content import LAYER, blob, image, index, put
from doubles import wrong

from ocipack.airgap import check, contents as contents_module, record, site as site_module
from ocipack.airgap.check import earlier, everything, listed, parse
from ocipack.airgap.compare import compare
from ocipack.airgap.contents import Earlier, Wanted
from ocipack.airgap.load import Load, Loader, moves
from ocipack.airgap.record import LeftOut, Papers, Record
from ocipack.airgap.save import SMALL, save
from ocipack.airgap.site import Site
from ocipack.copy import Transfers, copy
from ocipack.errors import IntegrityError, Misuse, NotFound, Rejected, Unavailable
from ocipack.mirror.model import Relocation
from ocipack.mirror.report import Outcome, Result
from ocipack.mirror.run import How
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.reference import Reference
from ocipack.stores.layout.archive import Archive
from ocipack.stores.layout.stream import Stream
from ocipack.stores.memory import MemoryStore
from ocipack.verify import decide

REF_NAME = "org.opencontainers.image.ref.name"
CONTAINERD = "io.containerd.image.name"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "site.tar"


def entries(path: Path) -> list[dict[str, Any]]:
    with tarfile.open(path) as archive:
        document = json.load(archive.extractfile("index.json"))  # type: ignore[arg-type] # it is there
    assert list(document) == ["schemaVersion", "mediaType", "manifests"]
    found: list[dict[str, Any]] = document["manifests"]
    return found


def names(path: Path) -> dict[str, str]:
    """What index.json names, and the digest of each."""
    said = [
        (entry.get("annotations", {}).get(REF_NAME), entry["digest"]) for entry in entries(path)
    ]
    return {name: digest for name, digest in said if name is not None}


def blobs(path: Path) -> set[str]:
    with tarfile.open(path) as archive:
        return {name.rpartition("/")[2] for name in archive.getnames() if "/" in name}


# what goes in


def test_everything_that_belongs_to_an_item_is_in_the_archive(path: Path) -> None:
    team = Team()
    write(path, team.wanted)
    own = {digest.hex for digest in team.store.content}
    assert own <= blobs(path)
    papers = [
        one["digest"]
        for one in entries(path)
        if one.get("annotations", {}).get(REF_NAME) == "ocipack-airgap"
    ]
    assert len(papers) == 1
    with Archive(path) as files:
        files.check()
        with Transfers() as transfers:
            (whole,) = everything(Site(files), transfers)
    assert {digest.hex for digest in whole.digests} == own
    assert whole.plan.kinds == {
        "indexes": 1,
        "manifests": 2,
        "blobs": len(own) - 3 - 7,
        "signatures": 6,
        "other referrers": 1,
        "digest tags": 3,
    }


def test_names_in_the_index(path: Path) -> None:
    team = Team()
    write(path, team.wanted)
    digests = [node.digest.hex for node in (team.root, *team.children)]
    listed_under = [*digests, team.attached[1].digest.hex]
    found = names(path)
    assert set(found) == {
        "registry.example/team/app:v1",
        *(f"registry.example/team/app:sha256-{one}.sig" for one in digests),
        *(f"sha256-{one}.sig" for one in digests),
        *(f"sha256-{one}" for one in listed_under),
        "ocipack-airgap",
    }
    assert found["registry.example/team/app:v1"] == str(team.root.digest)
    top = entries(path)[0]
    assert top["annotations"] == {
        CONTAINERD: "registry.example/team/app:v1",
        REF_NAME: "registry.example/team/app:v1",
    }
    loose = [entry for entry in entries(path) if "annotations" not in entry]
    assert {one["digest"] for one in loose} == {
        str(one.digest) for one in team.attached if one in team.attached[1::2] + team.attached[6:]
    }
    assert {one["artifactType"] for one in loose} == {BUNDLE, "application/x.deep"}


def test_the_fallback_tag_lists_referrers_as_the_specification_has_it(path: Path) -> None:
    team = Team()
    write(path, team.wanted)
    name = f"sha256-{team.root.digest.hex}"
    with tarfile.open(path) as archive:
        hex_ = names(path)[name].removeprefix("sha256:")
        listing = json.load(archive.extractfile(f"blobs/sha256/{hex_}"))  # type: ignore[arg-type] # it is there
    assert listing == {
        "schemaVersion": 2,
        "mediaType": INDEX,
        "manifests": [
            {
                "mediaType": MANIFEST,
                "size": team.attached[1].size,
                "digest": str(team.attached[1].digest),
                "annotations": SIGNS,
                "artifactType": BUNDLE,
            }
        ],
    }


def test_a_fallback_tag_of_the_origin_is_not_copied(path: Path) -> None:
    team = Team()
    stale = put(
        team.store, b'{"schemaVersion":2,"mediaType":"%b","manifests":[]}' % INDEX.encode(), INDEX
    )
    team.store.names[f"sha256-{team.root.digest.hex}"] = stale
    write(path, team.wanted)
    assert stale.digest.hex not in blobs(path)


@pytest.mark.parametrize("ending", [".sig", ".att", ""])
def test_what_is_only_attached_is_no_item(path: Path, ending: str) -> None:
    """Who reads the archive would take its name for something else."""
    team = Team()
    name = f"sha256-{team.root.digest.hex}{ending}"
    team.store.names[name] = team.root
    with pytest.raises(Misuse, match="such a tag says what is attached to a digest"):
        write(path, wanted(team.store, f"{team.name}:{name}"))


def test_two_repositories_with_one_tag_keep_both(path: Path) -> None:
    one, other = Team("a.example/team/app"), Team("b.example/team/app", words="other")
    write(path, one.wanted, other.wanted)
    assert names(path)["a.example/team/app:v1"] == str(one.root.digest)
    assert names(path)["b.example/team/app:v1"] == str(other.root.digest)
    with Archive(path) as files:
        assert [str(item.reference) for item in Site(files).items] == [
            f"a.example/team/app:v1@{one.root.digest}",
            f"b.example/team/app:v1@{other.root.digest}",
        ]


def test_two_digests_of_one_name_keep_both(path: Path) -> None:
    store = MemoryStore()
    one, two, three = (image(store, b"%d" % n) for n in range(3))
    name = "registry.example/app"
    write(
        path,
        wanted(store, f"{name}:v1@{one.digest}"),
        wanted(store, f"{name}:v1@{two.digest}"),
        wanted(store, f"{name}@{three.digest}"),
        wanted(store, f"{name}@{one.digest}"),
    )
    assert {said for said in names(path) if said.startswith(name)} == {
        f"{name}:v1@{one.digest}",
        f"{name}:v1@{two.digest}",
        f"{name}@{three.digest}",
        f"{name}@{one.digest}",
    }
    with Archive(path) as files:
        assert len(Site(files).items) == 4


def test_repositories_that_sign_one_image_differently(path: Path) -> None:
    ours, theirs = MemoryStore(), MemoryStore()
    roots = [image(store, b"the same") for store in (ours, theirs)]
    legacy = [
        attach(store, roots[0], words)["legacy"] for store, words in ((ours, "a"), (theirs, "b"))
    ]
    write(
        path,
        wanted(ours, f"a.example/app@{roots[0].digest}"),
        wanted(theirs, f"b.example/app@{roots[0].digest}"),
    )
    name = f"sha256-{roots[0].digest.hex}.sig"
    found = names(path)
    assert found[f"a.example/app:{name}"] == str(legacy[0].digest)
    assert found[f"b.example/app:{name}"] == str(legacy[1].digest)
    assert name not in found
    with Archive(path) as files:
        site = Site(files)
        assert site.at("a.example/app").resolve(name).digest == legacy[0].digest
        assert site.at("b.example/app").resolve(name).digest == legacy[1].digest
        assert list(site.at("a.example/app").tags()) == [name]


def test_the_same_content_has_the_same_bytes(tmp_path: Path) -> None:
    teams = [Team(f"{name}.example/app", words=name) for name in "abcd"]
    hashes = set()
    for number in range(4):
        random.Random(number).shuffle(teams)
        path = tmp_path / f"{number}.tar"
        write(path, *(team.wanted for team in teams), files={"x": b"1", "a/y": b"2"})
        hashes.add(hashlib.sha256(path.read_bytes()).hexdigest())
    assert len(hashes) == 1


def test_members_are_sorted(path: Path) -> None:
    write(path, Team().wanted)
    with tarfile.open(path) as archive:
        found = archive.getnames()
    assert found[:2] == ["oci-layout", "index.json"]
    assert found[2:] == sorted(found[2:])


def test_content_with_long_digests(path: Path) -> None:
    store = MemoryStore()
    root = image(store, b"layer", algorithm="sha512")
    write(path, wanted(store, f"registry.example/app@{root.digest}"))
    target = Target()
    (result,) = loaded(path, target)
    assert result.outcome is Outcome.COPIED, result.error
    there = target.stores["mirror.example/x/registry.example/app"]
    assert there.content == store.content
    assert there.names == {f"sha512.{root.digest.hex}"[:128]: root}


def test_a_shared_blob_is_fetched_and_written_once(path: Path) -> None:
    class Counting(MemoryStore):
        fetched: list[Digest]

        def fetch(self, target: Descriptor) -> Iterator[bytes]:
            self.fetched.append(target.digest)
            return super().fetch(target)

    store = Counting()
    store.fetched = []
    shared = b"s" * 1000
    roots = [image(store, shared, b"%d" % n) for n in range(5)]
    things = [wanted(store, f"registry.example/app@{one.digest}") for one in roots]
    store.fetched.clear()
    write(path, *things)
    assert store.fetched.count(blob(shared).digest) == 1
    assert len(store.fetched) == len(set(store.fetched))
    raw = path.read_bytes()
    assert raw.count(shared) == 1


def test_large_blobs_pass_through_in_pieces(path: Path) -> None:
    large = [bytes([n]) * (SMALL + 1) for n in range(3)]
    small = [bytes([n]) * 100_000 for n in range(50)]
    store = MemoryStore()
    root = image(store, *large, *small)
    done = write(path, wanted(store, f"registry.example/app@{root.digest}"))
    assert (done.kept, done.written) == (0, len(store.content) + 2 + 2 + 1)
    with Archive(path) as files:
        files.check()


def test_how_far_it_is_is_told(path: Path) -> None:
    found, told = contents(Team().wanted), list[int]()
    with Stream(path) as out:
        save(found, out, moved=told.append)
    assert sum(told) == found.size
    told.clear()
    with Archive(path) as files:
        files.check(told.append)
    assert sum(told) == found.size


def test_a_blob_that_is_not_what_it_is_said_to_be_ends_the_run(path: Path) -> None:
    for size in (100, SMALL + 100):
        store = MemoryStore()
        root = image(store, b"x" * size)
        spoiled = wrong(store, blob(b"x" * size))
        things = contents(Wanted(spoiled, proof(store, f"registry.example/app@{root.digest}")))

        def run(things: contents_module.Contents = things) -> None:
            with Stream(path) as out:
                save(things, out)

        with pytest.raises(IntegrityError):
            run()
        assert not path.exists()


def test_places_that_contradict_each_other(path: Path) -> None:
    one, other = MemoryStore(), MemoryStore()
    layer = blob(b"layer")
    first = image(one, b"layer")
    lying = Descriptor(LAYER, layer.digest, 6)
    document = json.loads(one.content[first.digest])
    document["layers"] = [lying.to_dict()]
    second = put(other, json.dumps(document).encode(), MANIFEST)
    with pytest.raises(IntegrityError, match="is said to have 5 and 6 bytes"):
        write(
            path,
            wanted(one, f"registry.example/a@{first.digest}"),
            wanted(other, f"registry.example/b@{second.digest}"),
        )


@pytest.mark.parametrize(
    ("limit", "value", "why"),
    [
        ("ENTRIES", 3, "entries in"),
        ("BYTES", 300, "in 4317 bytes, and a record of 142"),
        ("HELD", 2000, "bytes of manifests"),
    ],
)
def test_an_archive_that_could_not_be_read_is_not_written(
    path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, why: str
) -> None:
    assert (site_module.ENTRIES, site_module.BYTES) == (50_000, 32 * 1024 * 1024)
    monkeypatch.setattr(contents_module, limit, value)
    with pytest.raises(Rejected, match=why):
        write(path, Team().wanted)
    assert not path.exists()


# the record and the files


def test_files_come_along_and_any_tool_can_take_them_out(path: Path) -> None:
    given = {"ocipack.lock": b"lock", "policies/p.yaml": b"policy", "keys/cosign.pub": b"key"}
    write(path, Team().wanted, files=given)
    with Archive(path) as files:
        site = Site(files)
        assert {name: site.paper(name) for name in site.papers} == given
        manifest = site._papers
    assert manifest is not None
    assert manifest.document["artifactType"] == "application/vnd.ocipack.airgap.v1+json"
    assert {
        layer.annotations["org.opencontainers.image.title"] for layer in manifest.layers
    } == set(given)


def test_an_archive_without_files_still_has_a_layer_for_readers_that_want_one(path: Path) -> None:
    write(path, Team().wanted)
    with Archive(path) as files:
        site = Site(files)
        assert site.papers == {}
        assert site._papers is not None
        assert [one.size for one in site._papers.layers] == [2]


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a//b", "", ".", "a/../b", "a\0b"])
def test_files_with_names_that_lead_elsewhere(name: str) -> None:
    with pytest.raises(Misuse):
        Papers(Record(Digest.parse(DIGEST)), {name: b""})
    layer = Descriptor(record.FILE_TYPE, Digest.of(b""), 0, {record.TITLE: name})
    manifest = Papers(Record(Digest.parse(DIGEST))).manifest()[0]
    document = {**manifest.document, "layers": [layer.to_dict()]}
    with pytest.raises(IntegrityError, match="a file of the archive"):
        record.titles(type(manifest).build(document))


def test_files_are_counted_and_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (record.FILES, record.FILE_BYTES) == (1000, 16 * 1024 * 1024)
    monkeypatch.setattr(record, "FILES", 2)
    monkeypatch.setattr(record, "FILE_BYTES", 3)
    manifest, _ = Papers(Record(Digest.parse(DIGEST)), {"a": b"abc", "b": b""}).manifest()
    with pytest.raises(Misuse, match="3 files"):
        Papers(Record(Digest.parse(DIGEST)), dict.fromkeys("abc", b""))
    with pytest.raises(Misuse, match="a: more than 3 bytes"):
        Papers(Record(Digest.parse(DIGEST)), {"a": b"abcd"})
    monkeypatch.setattr(record, "FILES", 1)
    with pytest.raises(IntegrityError, match="more than 1 files"):
        record.titles(manifest)
    twice = {**manifest.document, "layers": [manifest.document["layers"][0]] * 2}
    with pytest.raises(IntegrityError, match="there twice"):
        record.titles(type(manifest).build(twice))


DIGEST = "sha256:" + "0" * 64


def test_the_record_as_it_stands() -> None:
    seal = Digest.parse(DIGEST)
    left = LeftOut(seal, 5, ("a.example/x", "b.example:5000/y"))
    made = Record(seal, seal, (left,))
    assert json.loads(made.encode()) == {
        "apiVersion": "ocipack.dev/v1alpha1",
        "kind": "AirgapArchive",
        "index": DIGEST,
        "leftOut": {
            "since": DIGEST,
            "blobs": [
                {"digest": DIGEST, "size": 5, "repositories": ["a.example/x", "b.example:5000/y"]}
            ],
        },
    }
    assert Record.decode(made.encode()) == made
    assert Record.decode(Record(seal).encode()) == Record(seal)
    assert Record.decode(Record(seal, seal).encode()) == Record(seal, seal)
    with pytest.raises(Misuse, match="nothing says which archive had them"):
        Record(seal, None, (left,))


TOP = {"apiVersion": "ocipack.dev/v1alpha1", "kind": "AirgapArchive", "index": DIGEST}
BAD_RECORDS: list[object] = [
    [],
    {},
    {"apiVersion": "ocipack.dev/v1alpha1", "kind": "AirgapArchive"},
    {**TOP, "index": "sha256:0"},
    {"apiVersion": "ocipack.dev/v2", "kind": "AirgapArchive"},
    {**TOP, "kind": "Lock"},
    {**TOP, "more": 1},
    {**TOP, "leftOut": []},
    {**TOP, "leftOut": {"since": DIGEST}},
    {**TOP, "leftOut": {"since": "latest", "blobs": []}},
    {**TOP, "leftOut": {"since": DIGEST, "blobs": [5]}},
    {**TOP, "leftOut": {"since": DIGEST, "blobs": [{"digest": DIGEST}]}},
    {**TOP, "leftOut": {"since": DIGEST, "blobs": [{"digest": DIGEST, "size": -1}]}},
    {**TOP, "leftOut": {"since": DIGEST, "blobs": [{"digest": DIGEST, "size": True}]}},
    {**TOP, "leftOut": {"since": DIGEST, "blobs": [{"digest": DIGEST, "size": "5"}]}},
    {**TOP, "leftOut": {"since": DIGEST, "blobs": [{"digest": 5, "size": 5}]}},
    *(
        {
            **TOP,
            "leftOut": {
                "since": DIGEST,
                "blobs": [{"digest": DIGEST, "size": 5, "repositories": names}],
            },
        }
        for names in ("a.example/x", [5], ["x"], ["a.example/x:v1"], [f"a.example/x@{DIGEST}"])
    ),
]


@pytest.mark.parametrize("document", BAD_RECORDS)
def test_records_that_are_refused(document: object) -> None:
    with pytest.raises(IntegrityError, match="the record of the archive"):
        Record.decode(json.dumps(document).encode())


def test_a_record_that_is_too_long(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert record.BYTES == 32 * 1024 * 1024
    write(path, Team().wanted)
    monkeypatch.setattr(record, "BYTES", 100)
    with Archive(path) as files, pytest.raises(IntegrityError, match="at most 100 are read"):
        Site(files)
    with pytest.raises(Rejected, match="and a record of 142"):
        write(path, Team().wanted)


def test_the_schema_and_the_reader_agree() -> None:
    import jsonschema_rs  # noqa: PLC0415 - heavy

    root = Path(__file__).parents[2]
    schema = json.loads((root / "docs/schemas/airgap-v1alpha1.json").read_text())
    check = jsonschema_rs.validator_for(schema)
    seal = Digest.parse(DIGEST)
    left = LeftOut(seal, 5, ("a.example/x", "b.example:5000/y/z"))
    for good in (Record(seal), Record(seal, seal), Record(seal, seal, (left, LeftOut(seal, 0)))):
        assert check.is_valid(json.loads(good.encode()))
    for bad in BAD_RECORDS:
        assert not check.is_valid(bad), bad


# what is read


class Memory:
    """Files of a layout in memory."""

    where = "memory.tar"

    def __init__(self, *given: dict[str, Any], store: MemoryStore | None = None) -> None:
        self.files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}'}
        self.index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": list(given)}
        self.files["index.json"] = json.dumps(self.index).encode()
        self.store = store or MemoryStore()

    @property
    def blobs(self) -> dict[Digest, int]:
        return {digest: len(raw) for digest, raw in self.store.content.items()}

    def has(self, name: str) -> int | None:
        try:
            return len(b"".join(self.read(name)))
        except NotFound:
            return None

    def read(self, name: str) -> Iterator[bytes]:
        if name in self.files:
            return iter([self.files[name]])
        _, algorithm, hex_ = name.split("/")
        digest = Digest(algorithm, hex_)
        if digest not in self.store.content:
            raise NotFound(f"no {name}")
        return iter([self.store.content[digest]])


def entry(target: Descriptor, name: str = "", **more: Any) -> dict[str, Any]:
    said = {**target.to_dict(), **more}
    return {**said, "annotations": {REF_NAME: name}} if name else said


STORE = MemoryStore()
ONE, TWO = image(STORE, b"1"), image(STORE, b"2")
OK = "registry.example/app:v1"

HOSTILE: dict[str, tuple[list[Any], str]] = {
    "a name for two things": ([entry(ONE, OK), entry(TWO, OK)], "names two things"),
    "a name for two types": (
        [entry(ONE, OK), entry(ONE, OK, mediaType=INDEX)],
        "names two things",
    ),
    "a digest of something else": (
        [entry(ONE, f"registry.example/app@{TWO.digest}")],
        f"is {ONE.digest}",
    ),
    "a name without a registry": ([entry(ONE, "v1")], "says no repository"),
    "a short name": ([entry(ONE, "library/nginx:1")], "says no repository"),
    "a path": ([entry(ONE, "../../etc/x:v1")], "says no repository"),
    "an entry that is no object": ([5], "descriptor must be a JSON object"),
    "an entry without a digest": ([{"mediaType": MANIFEST, "size": 5}], "'digest' is missing"),
    "an entry that is no manifest": ([entry(blob(b"x"), OK)], "no manifest"),
    "a negative size": ([{**entry(ONE, OK), "size": -1}], "not a size"),
    "another size": ([{**entry(ONE, OK), "size": 5}], "more than 5 bytes"),
    "a referrer that is not there": (
        [entry(Descriptor(MANIFEST, Digest.of(b"gone"), 4))],
        "is missing in it",
    ),
    "an item that is not there": (
        [entry(Descriptor(MANIFEST, Digest.of(b"gone"), 4), OK)],
        "is missing in it",
    ),
    "two records": (
        [entry(ONE, "ocipack-airgap"), entry(TWO, "ocipack-airgap")],
        "names two things",
    ),
    "a record that is none": ([entry(ONE, "ocipack-airgap")], "the record of the archive"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_an_index_that_is_refused(case: str) -> None:
    given, why = HOSTILE[case]
    files = Memory(*given, store=STORE)

    def read() -> None:
        with Transfers() as transfers:
            everything(Site(files), transfers)

    with pytest.raises(IntegrityError, match=why):
        read()


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"{",
        b'{"manifests":{}}',
        b'{"mediaType":"x","manifests":[]}',
        b'{"manifests":[],"manifests":[]}',
        b"\xff",
    ],
)
def test_an_index_that_is_none(raw: bytes) -> None:
    files = Memory()
    files.files["index.json"] = raw
    with pytest.raises(IntegrityError):
        Site(files)


@pytest.mark.parametrize("raw", [b"{}", b'{"imageLayoutVersion":"2.0.0"}', b"[]", b"x" * 500])
def test_a_layout_of_another_version(raw: bytes) -> None:
    files = Memory()
    files.files["oci-layout"] = raw
    with pytest.raises(IntegrityError):
        Site(files)


@pytest.mark.parametrize(
    ("limit", "value", "why"),
    [("ENTRIES", 1, "at most 1 entries"), ("BYTES", 100, "100 bytes"), ("HELD", 10, "10 bytes")],
)
def test_limits_of_an_index(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int, why: str
) -> None:
    assert site_module.HELD == 512 * 1024 * 1024
    files = Memory(entry(ONE, OK), entry(TWO), store=STORE)
    Site(files)
    monkeypatch.setattr(site_module, limit, value)
    with pytest.raises(IntegrityError, match=why):
        Site(files)


def test_lists_of_referrers_are_read_once_and_bounded_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # a list of a thousand under a thousand names is not a million; a small archive is not big
    store = MemoryStore()
    root = image(store, b"1")
    attached = [image(store, b"%d" % n, subject=root) for n in range(3)]
    one, two = index(store, *attached[:2]), index(store, attached[2])
    under = [f"sha256-{number:064x}" for number in range(30)]
    files = Memory(entry(root, OK), *(entry(one, name) for name in under), store=store)
    reads: list[str] = []
    read = files.read

    def noted(name: str) -> Iterator[bytes]:
        reads.append(name)
        return read(name)

    monkeypatch.setattr(files, "read", noted)
    site = Site(files)
    assert len(list(site.at("registry.example/app").referrers(root))) == 2
    assert reads.count(f"blobs/sha256/{one.digest.hex}") <= 2, "its size, and its content"
    both = Memory(entry(root, OK), entry(one, under[0]), entry(two, under[1]), store=store)
    Site(both)
    monkeypatch.setattr(site_module, "ENTRIES", 3)
    Site(both)
    more = image(store, b"more", subject=root)
    third = index(store, more)
    listed = ((one, under[0]), (two, under[1]), (third, under[2]))
    with pytest.raises(IntegrityError, match="more than 3 referrers"):
        Site(Memory(*(entry(*pair) for pair in listed), store=store))
    sizes = one.size + two.size + sum(target.size for target in attached)
    monkeypatch.setattr(site_module, "HELD", sizes)
    Site(both)
    monkeypatch.setattr(site_module, "HELD", sizes - 1)
    with pytest.raises(IntegrityError, match="bytes of referrers"):
        Site(both)


def test_what_all_names_together_name_is_bounded(
    monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    assert site_module.PARTS == 1_000_000
    store = MemoryStore()
    root = index(store, *(image(store, b"%d" % n) for n in range(3)))
    names = [entry(root, f"registry.example/app:v{n}") for n in range(4)]
    with Transfers() as transfers:
        parts = len(everything(Site(Memory(names[0], store=store)), transfers)[0].plan.parts)
        monkeypatch.setattr("ocipack.airgap.check.PARTS", 3 * parts)
        everything(Site(Memory(*names[:3], store=store)), transfers)
        with pytest.raises(Rejected, match=f"more than {3 * parts} manifests and blobs to look at"):
            everything(Site(Memory(*names, store=store)), transfers)
    for number in range(4):
        store.names[f"v{number}"] = root
    saved = [wanted(store, f"registry.example/app:v{number}") for number in range(4)]
    monkeypatch.setattr("ocipack.airgap.contents.PARTS", 3 * parts)
    write(path, *saved[:3])
    with pytest.raises(Rejected, match=f"more than {3 * parts} manifests and blobs"):
        write(path, *saved)


def test_an_archive_of_another_tool_is_read_by_its_names() -> None:
    store = MemoryStore()
    root = image(store, b"1")
    found = attach(store, root, "x")
    listing = index(store, found["bundle"])
    hex_ = root.digest.hex
    for given in (
        [entry(root, OK), entry(found["bundle"]), entry(found["legacy"], f"sha256-{hex_}.sig")],
        [
            entry(root, OK),
            entry(listing, f"sha256-{hex_}"),
            entry(found["legacy"], f"sha256-{hex_}.sig"),
        ],
    ):
        site = Site(Memory(*given, store=store))
        source = site.at("registry.example/app")
        assert source.resolve("v1") == root
        assert source.resolve(str(root.digest)) == root
        assert source.resolve(f"sha256-{hex_}.sig") == found["legacy"]
        assert [one.plain for one in source.referrers(root)] == [found["bundle"]]
        assert [one.artifact_type for one in source.referrers(root)] == [BUNDLE]
        with pytest.raises(NotFound):
            source.resolve("v2")
        with pytest.raises(NotFound):
            site.at("registry.example/other").resolve(str(root.digest))


def test_a_listing_cannot_make_a_referrer_of_what_names_another_subject() -> None:
    store = MemoryStore()
    root, other = image(store, b"1"), image(store, b"2")
    found = attach(store, other, "x")
    listing = index(store, found["bundle"], other)
    files = Memory(entry(root, OK), entry(listing, f"sha256-{root.digest.hex}"), store=store)
    assert list(Site(files).at("registry.example/app").referrers(root)) == []


def test_a_tag_that_stands_for_two_digests_is_asked_for_by_digest() -> None:
    site = Site(
        Memory(entry(ONE, f"{OK}@{ONE.digest}"), entry(TWO, f"{OK}@{TWO.digest}"), store=STORE)
    )
    source = site.at("registry.example/app")
    with pytest.raises(IntegrityError, match="several things"):
        source.resolve("v1")
    assert source.resolve(str(TWO.digest)) == TWO


# whether it is whole


def rewritten(path: Path, change: Any) -> Path:
    """Write the tar again, with what `change` makes of its files."""
    with tarfile.open(path) as archive:
        found = {m.name: archive.extractfile(m).read() for m in archive}  # type: ignore[union-attr] # all are files
    change(found)
    path.write_bytes(b"".join(tars.entry(name, data) for name, data in found.items()) + bytes(1024))
    return path


EDITS = {
    "another tag": lambda entry: entry["annotations"].update({REF_NAME: "registry.example/x:v2"}),
    "another repository": lambda entry: entry["annotations"].update({REF_NAME: "a.example/x:v1"}),
    "no name": lambda entry: entry.pop("annotations"),
    "one more annotation": lambda entry: entry["annotations"].update(more="x"),
    "another platform": lambda entry: entry.update(platform={"os": "linux"}),
}


@pytest.mark.parametrize("edit", EDITS)
def test_names_that_are_not_what_they_were(path: Path, edit: str) -> None:
    write(path, Team().wanted)

    def change(found: dict[str, bytes]) -> None:
        document = json.loads(found["index.json"])
        EDITS[edit](document["manifests"][0])
        found["index.json"] = json.dumps(document, separators=(",", ":")).encode()

    with Archive(rewritten(path, change)) as files:
        files.check()
        with pytest.raises(IntegrityError, match="not what it was when the archive was saved"):
            Site(files)


@pytest.mark.parametrize("name", ["", "ocipack-airgaq"])
def test_a_record_that_lost_its_name(path: Path, name: str) -> None:
    write(path, Team().wanted)

    def change(found: dict[str, bytes]) -> None:
        document = json.loads(found["index.json"])
        del document["manifests"][-1]["annotations"]
        if name:
            document["manifests"][-1]["annotations"] = {REF_NAME: name}
        found["index.json"] = json.dumps(document).encode()

    with (
        Archive(rewritten(path, change)) as files,
        pytest.raises(IntegrityError, match=r"lost its name|says no repository"),
    ):
        Site(files)


@pytest.mark.parametrize("attached", [False, True])
def test_every_part_must_be_there(path: Path, attached: bool) -> None:  # noqa: FBT001 - a parameter of the test
    team = Team()
    write(path, team.wanted)
    raw = path.read_bytes()
    own = set(team.store.content)
    below = {one.digest for one in team.attached}
    with Archive(path) as files, Transfers() as transfers:
        (whole,) = everything(Site(files), transfers)
        assert set(whole.digests) == own
    lost = 0
    for digest in sorted(own):
        if (digest in below) is not attached:
            continue
        path.write_bytes(raw)
        name = f"blobs/sha256/{digest.hex}"
        rewritten(path, lambda found, name=name: found.pop(name))

        def read() -> None:
            with Archive(path) as files, Transfers() as transfers:
                files.check()
                everything(Site(files), transfers)

        with pytest.raises(IntegrityError, match=digest.hex):
            read()
        lost += 1
    assert lost == (7 if attached else len(own) - 7)


def test_a_blob_of_another_size_than_its_manifest_says() -> None:
    store = MemoryStore()
    root = image(store, b"layer")
    document = json.loads(store.content[root.digest])
    document["layers"][0]["size"] = 6
    lying = put(store, json.dumps(document).encode(), MANIFEST)
    files = Memory(entry(lying, OK), store=store)
    with (
        Transfers() as transfers,
        pytest.raises(IntegrityError, match="has 5 bytes, and should have 6"),
    ):
        everything(Site(files), transfers)


def test_an_archive_with_nothing_in_it() -> None:
    with Transfers() as transfers, pytest.raises(Rejected, match="holds no image"):
        everything(Site(Memory()), transfers)


# what an earlier archive had


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path, Team, Team]:
    """An archive, and a later one that has one image more and leaves out what they share."""
    before, after = Team(), Team("registry.example/team/web", words="new")
    write(tmp_path / "before.tar", before.wanted)
    since = had(tmp_path / "before.tar")
    write(tmp_path / "after.tar", before.wanted, after.wanted, since=since)
    return tmp_path / "before.tar", tmp_path / "after.tar", before, after


def test_what_an_earlier_archive_had_is_left_out(two: tuple[Path, Path, Team, Team]) -> None:
    first, second, before, after = two
    base = blob(b"shared by both" * 100)
    assert base.digest.hex in blobs(first)
    assert base.digest.hex not in blobs(second)
    proving = {one.digest.hex for one in before.attached}
    assert proving <= blobs(second), "what proves an item is always there"
    with Archive(first) as files:
        known = Site(files).digest
    with Archive(second) as files, Transfers() as transfers:
        site = Site(files)
        assert site.since == known
        assert site.left_out[base.digest] == LeftOut(
            base.digest, base.size, ("registry.example/team/app",)
        )
        old, new = everything(site, transfers)
        assert base in old.left_out
        assert base in new.left_out
        own = {digest for digest in after.store.content if digest not in before.store.content}
        assert not {one.digest for one in new.left_out} & own


def test_what_is_attached_leaves_out_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # anybody can attach something; loading mounts what is left out from where the record says
    secret, team = Team("registry.example/secret/app", words="secret"), Team(words="ours")
    write(path, secret.wanted)
    since = had(path)
    layer = blob(b"secret0")
    assert layer.digest in since.blobs
    image(team.store, b"secret0", subject=team.root, artifactType="application/x.theft")
    monkeypatch.setattr("ocipack.airgap.contents.attached", lambda _: iter(()))
    write(path, team.wanted, since=since)
    with Archive(path) as files, Transfers() as transfers:
        site = Site(files)
        assert site.left_out[layer.digest].repositories == ("registry.example/secret/app",)
        with pytest.raises(IntegrityError, match=r"team/app.*: sha256:\w+ is missing in"):
            everything(site, transfers)


def test_what_was_left_out_is_not_read_from_nowhere(two: tuple[Path, Path, Team, Team]) -> None:
    first, second, *_ = two
    base = blob(b"shared by both" * 100)
    with Archive(second) as files:
        with pytest.raises(Rejected, match="left out of") as raised:
            Site(files).fetch(base)
        assert raised.value.hint == "load that one first, or name it with --since"
        with Archive(first) as before:
            assert b"".join(Site(files, Site(before)).fetch(base)) == b"shared by both" * 100


def test_a_third_archive_builds_on_both(two: tuple[Path, Path, Team, Team], path: Path) -> None:
    _, second, before, after = two
    write(path, before.wanted, after.wanted, since=had(second))
    base = blob(b"shared by both" * 100)
    with Archive(path) as files:
        site = Site(files)
        assert site.left_out[base.digest].repositories == (
            "registry.example/team/app",
            "registry.example/team/web",
        )


def test_a_list_of_digests_does_for_the_archive(
    two: tuple[Path, Path, Team, Team], path: Path
) -> None:
    first, second, before, after = two
    known = had(first)
    text = "\n".join(listed(known)) + "\n"
    assert check.is_list(text.encode())
    assert not check.is_list(first.read_bytes()[:64])
    assert parse(text.encode(), "list") == known
    write(path, before.wanted, after.wanted, since=parse(text.encode(), "list"))
    assert path.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ocipack-airgap latest\n", "list:1: not a digest"),
        (f"ocipack-airgap {DIGEST}\n\n", "list:2: not `digest size repository`"),
        (f"ocipack-airgap {DIGEST}\n{DIGEST} 5\n", "list:2: not `digest size repository`"),
        (f"ocipack-airgap {DIGEST}\n{DIGEST} 05 a.example/x\n", "list:2: not `digest"),
        (f"ocipack-airgap {DIGEST}\nsha256:00 5 a.example/x\n", "list:2: not a digest"),
        (f"ocipack-airgap {DIGEST}\n{DIGEST} 5 x\n", "list:2: not a reference"),
        (f"ocipack-airgap {DIGEST}\n{DIGEST} 5 a.example/x\n{DIGEST} 6 a.example/x\n", "list:3"),
    ],
)
def test_lists_that_are_refused(text: str, why: str) -> None:
    with pytest.raises(Misuse, match=why):
        parse(text.encode(), "list")


def test_a_blob_of_another_size_is_not_left_out(path: Path) -> None:
    store = MemoryStore()
    root = image(store, b"layer")
    layer = blob(b"layer")
    lying = Earlier(Digest.parse(DIGEST), {layer.digest: LeftOut(layer.digest, 6, ())})
    write(path, wanted(store, f"registry.example/app@{root.digest}"), since=lying)
    assert layer.digest.hex in blobs(path)


# what two archives differ in


def test_what_changed(tmp_path: Path) -> None:
    store = MemoryStore()
    roots = [image(store, b"%d" % n * 100) for n in range(4)]

    def things(**tags: int) -> list[Wanted]:
        store.names.clear()
        store.names.update({name: roots[n] for name, n in tags.items()})
        return [wanted(store, f"registry.example/app:{name}") for name in tags]

    write(tmp_path / "a.tar", *things(same=0, moved=1, gone=2, signed=3))
    attach(store, roots[3], "x")
    later = things(same=0, moved=2, came=3, signed=3)
    store.names[f"sha256-{roots[3].digest.hex}.sig"] = image(store, b"legacy x")
    write(tmp_path / "b.tar", *later)
    with (
        Archive(tmp_path / "a.tar") as a,
        Archive(tmp_path / "b.tar") as b,
        Transfers() as transfers,
    ):
        old, new = everything(Site(a), transfers), everything(Site(b), transfers)
        found = compare(old, new)
        back = compare(new, old)
    said = [(one.name.rpartition(":")[2], one.word) for one in found.changes]
    assert said == [
        ("came", "added"),
        ("gone", "removed"),
        ("moved", "moved"),
        ("signed", "attached"),
    ]
    assert found.unchanged == 1
    moved = found.changes[2]
    assert (moved.before, moved.after) == (roots[1].digest, roots[2].digest)
    signed = found.changes[3]
    assert (signed.came, signed.went) == (6, 0)
    lost = {roots[1].digest, blob(b"1" * 100).digest}
    assert found.removed_bytes >= sum(len(store.content[digest]) for digest in lost)
    assert (back.added_bytes, back.removed_bytes) == (found.removed_bytes, found.added_bytes)


# what is loaded


class Target:
    """A registry in memory: a store for each repository."""

    def __init__(self) -> None:
        self.stores: dict[str, MemoryStore] = {}

    def target(self, repository: Reference) -> MemoryStore:
        return self.stores.setdefault(repository.bare, MemoryStore())

    anew = target


def loaded(
    path: Path, target: Target, *, base: str = "mirror.example/x", overwrite: bool = False
) -> list[Result]:
    with Archive(path) as files, Transfers() as transfers:
        site = Site(files)
        relocation = Relocation(base)
        items = everything(site, transfers)
        loads = [
            Load(move, whole, decide(site.at(whole.item.bare), whole.item.reference, ANYTHING))
            for move, whole in zip(moves(site, relocation), items, strict=True)
        ]
        return Loader(site, relocation, target, transfers, How(overwrite=overwrite)).run(loads)


def test_everything_arrives(path: Path) -> None:
    team = Team()
    write(path, team.wanted)
    target = Target()
    (result,) = loaded(path, target)
    assert (result.outcome, result.place) == (
        Outcome.COPIED,
        f"oci://mirror.example/x/registry.example/team/app:v1@{team.root.digest}",
    )
    store = target.stores["mirror.example/x/registry.example/team/app"]
    assert store.content == team.store.content
    assert store.names == team.store.names
    (again,) = loaded(path, target)
    assert (again.outcome, again.done.copied) == (Outcome.SKIPPED, 0)


def test_what_is_missing_at_the_target_under_the_right_tag_is_brought(path: Path) -> None:
    team = Team()
    write(path, team.wanted)
    target = Target()
    store = target.target(Reference.parse("mirror.example/x/registry.example/team/app"))
    copy(team.store, store, team.root, tag="v1")
    (result,) = loaded(path, target)
    assert result.outcome is Outcome.COPIED
    assert store.content == team.store.content


def test_a_tag_that_stands_for_something_else_is_left_alone(path: Path) -> None:
    team, other = Team(), Team("registry.example/team/web", words="w")
    write(path, team.wanted, other.wanted)
    target = Target()
    store = target.target(Reference.parse("mirror.example/x/registry.example/team/app"))
    theirs = image(store, b"theirs")
    store.names["v1"] = theirs
    drifted, copied = loaded(path, target)
    assert (drifted.outcome, copied.outcome) == (Outcome.DRIFTED, Outcome.COPIED)
    assert store.names == {"v1": theirs}
    assert team.root.digest not in store.content
    assert [finding.rule for finding in drifted.findings()] == ["mirror-drifted"]
    overwritten, same = loaded(path, target, overwrite=True)
    assert (overwritten.outcome, same.outcome) == (Outcome.OVERWRITTEN, Outcome.SKIPPED)
    assert store.names["v1"] == team.root


def test_what_has_no_tag_gets_one_of_its_digest(path: Path) -> None:
    store = MemoryStore()
    one, two, three = (image(store, b"%d" % n) for n in range(3))
    name = "registry.example/app"
    write(
        path,
        wanted(store, f"{name}:v1@{one.digest}"),
        wanted(store, f"{name}:v1@{two.digest}"),
        wanted(store, f"{name}@{three.digest}"),
    )
    target = Target()
    loaded(path, target)
    there = target.stores[f"mirror.example/x/{name}"]
    assert there.names == {f"sha256.{one.digest.hex}": one for one in (one, two, three)}


def test_two_repositories_that_would_become_one(path: Path) -> None:
    write(path, Team("a.example/app").wanted, Team("b.example/app", words="b").wanted)
    with Archive(path) as files:
        site = Site(files)
        with pytest.raises(Misuse, match=r"would both become mirror\.example/x/app"):
            moves(site, Relocation("mirror.example/x", "path"))
        found = moves(site, Relocation("mirror.example/x", "full"))
    assert [str(one.target) for one in found] == [
        "mirror.example/x/a.example/app",
        "mirror.example/x/b.example/app",
    ]


def test_proof_about_something_else_loads_nothing(path: Path) -> None:
    team, other = Team(), Team("registry.example/team/web", words="w")
    write(path, team.wanted, other.wanted)
    with Archive(path) as files, Transfers() as transfers:
        site = Site(files)
        first, second = everything(site, transfers)
        one, two = moves(site, Relocation("mirror.example/x"))
        good = decide(site.at(first.item.bare), first.item.reference, ANYTHING)
        Load(one, first, good)
        for move, whole in ((two, second), (one, second), (two, first)):
            with pytest.raises(IntegrityError, match="proof about another manifest"):
                Load(move, whole, good)


def test_what_was_left_out_must_be_at_the_target(two: tuple[Path, Path, Team, Team]) -> None:
    first, second, before, _ = two
    target = Target()
    results = loaded(second, target)
    assert [one.outcome for one in results] == [Outcome.FAILED, Outcome.FAILED]
    assert "is not in" in str(results[0].error)
    assert results[0].error is not None
    assert results[0].error.hint == "load that archive first"
    assert all(not store.content and not store.names for store in target.stores.values())
    loaded(first, target)
    results = loaded(second, target)
    assert results[0].outcome is Outcome.SKIPPED
    assert (
        target.stores["mirror.example/x/registry.example/team/app"].content == before.store.content
    )
    assert results[1].outcome is Outcome.FAILED, "memory does not mount; a registry does"
    assert not target.stores["mirror.example/x/registry.example/team/web"].names


def test_one_that_fails_keeps_no_other_from_being_loaded(path: Path) -> None:
    class Full(MemoryStore):
        def push(self, target: Descriptor, source: Any) -> None:
            raise Unavailable(f"no room for {target.digest} of {source}")

    team, other = Team(), Team("registry.example/team/web", words="w")
    write(path, team.wanted, other.wanted)
    target = Target()
    target.stores["mirror.example/x/registry.example/team/app"] = Full()
    results = loaded(path, target)
    assert [one.outcome for one in results] == [Outcome.FAILED, Outcome.COPIED]
    assert target.stores["mirror.example/x/registry.example/team/app"].names == {}


def test_the_source_of_earlier_digests_is_the_closure(path: Path) -> None:
    team = Team()
    write(path, team.wanted)
    with Archive(path) as files, Transfers() as transfers:
        site = Site(files)
        known = earlier(site, everything(site, transfers))
    manifests = {one.digest for one in (team.root, *team.children, *team.attached)}
    assert set(known.blobs) == set(team.store.content) - manifests
