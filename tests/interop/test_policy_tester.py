"""policy-controller's own `policy-tester` on the ClusterImagePolicies of the table.

For each row it is asked about an image that has exactly the evidence of the row, made by cosign 2
(and 3, for a bundle). It agrees, or the difference is written down in `THEIRS`, with the reason in
docs/policy.md. `tests/interop/peers.sh policy-tester` builds it; nothing here is required in CI.
"""

from __future__ import annotations

import itertools
import json
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_image_policies import ALICE, BOB, HEAD, READ, REFUSED, SIGN
from interop import servers
from interop.peers import NO_LOG, NO_LOG_2, Desk, Ended, Missing, find
from interop.wire import Repository

from ocipack.trust.policy.decision import Evidence

HOST = "r.example.com"
HUB = "docker.io/"
YES, NO, INVALID = "yes", "no", "invalid"
OURS = {"verified": YES, "exempted": YES, "rejected": NO}
"""A verdict of ours, there: it knows no exempted, and tells of warnings only beside errors."""

TOOLS = ("policy-tester", "cosign2", "cosign3", "docker-registry")

THEIRS = {
    "27": NO,  # Fulcio's certificates cannot be fetched here
    "28": NO,  # there is no Secret to read
    "29": NO,  # the KMS is not asked: no key
    "30": NO,  # Rekor's keys cannot be fetched here
    "31": YES,  # timestamps are not asked for where the key is given and no trust root is named
    "32": NO,  # there is no signature in that place
    "33": NO,  # taken as a file, and then a bundle needs a keyless authority
    "34": NO,  # nobody has attested it
    "35": NO,  # Rego is asked
    "36": NO,  # nothing is covered: the tester has no object to match
    "39": YES,  # static pass is one of the alternatives, so the others have no effect
    "42": NO,  # any word is taken for a type, and nobody has attested it
    "43": NO,  # SHA-512 is read, and the signature was made with SHA-256
    "47": YES,  # a static pass that warns still passes
    "48": YES,  # Go's JSON does not tell ctLog from ctlog, and an empty one asks for nothing
}
"""By number of the row: what it answers where it reads what we refuse. All others it refuses too,
and of what both read there is none about which they differ."""


def need(name: str) -> None:
    try:
        find(name)
    except Missing as missing:
        pytest.skip(str(missing))


class Shelf:
    """Images in a registry, one repository for each set of evidence."""

    def __init__(self, host: str, keys: dict[str, str], folder: Path) -> None:
        self.host, self.keys, self.desk = host, keys, Desk(folder)
        self._made: dict[tuple[tuple[str, str, str], ...], str] = {}
        self._count = itertools.count(1)

    def base(self, evidence: tuple[Evidence, ...], owners: dict[str, str]) -> str:
        """What stands for HOST in a row: below it `team/app:v1` has this evidence, no other."""
        wanted = tuple((owners[one.key], one.form, one.predicate_type) for one in evidence)
        if wanted not in self._made:
            base = f"e{next(self._count)}"
            repository = Repository(self.host, f"{base}/team/app")
            digest = repository.put_image(base, "v1")["digest"]
            for owner, form, kind in wanted:
                self._add(f"{repository}@{digest}", self.keys[owner], form, kind)
            self._made[wanted] = f"{self.host}/{base}"
        return self._made[wanted]

    def _add(self, target: str, key: str, form: str, kind: str) -> None:
        if kind != SIGN:
            (self.desk.folder / "predicate.json").write_text("{}")
            what = ("--type", kind, "--predicate", "predicate.json", "--key", f"{key}.key")
            self.desk.tool("cosign2", "attest", *what, *NO_LOG_2, target).expect()
        elif form == "bundle":
            said = ("--new-bundle-format=true", "--key", f"{key}.key")
            self.desk.tool("cosign3", "sign", *said, *NO_LOG, target).expect()
        else:
            said = ("--new-bundle-format=false", "--key", f"{key}.key")
            self.desk.tool("cosign2", "sign", *said, *NO_LOG_2, target).expect()

    def public(self, owner: str) -> str:
        return json.dumps(Path(f"{self.keys[owner]}.pub").read_text())

    def asked(self, spec: str, name: str, evidence: tuple[Evidence, ...]) -> Ended:
        """What policy-tester says of the policy with this `spec` about the image `name`."""
        owners = {one.key: "alice" if one.key == _id(ALICE) else "bob" for one in evidence}
        base = self.base(evidence, owners)
        spec = spec.replace(ALICE, self.public("alice")).replace(BOB, self.public("bob"))
        spec = textwrap.indent(spec.replace(HOST, base).strip(), "  ")
        (self.desk.folder / "cip.yaml").write_text(f"{HEAD}metadata: {{name: a}}\nspec:\n{spec}\n")
        image = name.replace(HOST, base)
        return self.desk.tool(
            "policy-tester", "-policy", "cip.yaml", "-image", image, "-log-level", "error"
        )


def _id(pem: str) -> str:
    from ocipack.trust.keys import PublicKey  # noqa: PLC0415 - once, of a text

    return PublicKey.parse(json.loads(pem).encode()).id


def answer(ended: Ended) -> str:
    if "CIP is invalid" in ended.err:
        return INVALID
    return NO if ended.code else YES


@pytest.fixture(scope="module")
def shelf(keys: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    for name in TOOLS:
        need(name)
    folder = tmp_path_factory.mktemp("tester")
    (folder / "desk").mkdir()
    with servers.registry("docker-registry", folder) as running:
        yield Shelf(running.host, keys, folder / "desk")


def test_no_key_of_the_rows_is_taken_for_anothers() -> None:
    assert _id(ALICE) != _id(BOB)


@pytest.mark.parametrize("row", READ, ids=[row[0] for row in READ])
def test_it_agrees_about_what_we_read(
    shelf: Shelf, row: tuple[str, str, str, tuple[Evidence, ...], str]
) -> None:
    _, spec, name, evidence, verdict = row
    ended = shelf.asked(spec, name, evidence)
    covered = "is uncovered by policy" not in ended.out
    if name.startswith(HUB):  # nobody answers for Docker Hub here: what can be told is the glob
        assert covered is (verdict == "verified"), ended
        return
    assert answer(ended) == OURS[verdict], ended


@pytest.mark.parametrize("row", REFUSED, ids=[row[0] for row in REFUSED])
def test_what_it_makes_of_what_we_refuse(shelf: Shelf, row: tuple[str, str, str]) -> None:
    title, spec, _ = row
    signed = next(
        evidence for _, _, _, evidence, _ in READ if evidence
    )  # by alice, in the old form
    ended = shelf.asked(f"images: [{{glob: '**'}}]\n{spec}", f"{HOST}/team/app:v1", signed)
    assert answer(ended) == THEIRS.get(title.split()[0], INVALID), ended


def test_every_difference_is_of_a_row() -> None:
    assert {row[0].split()[0] for row in REFUSED} >= THEIRS.keys()
