"""cosign 2 and 3 believe what we signed, and we believe what they signed, on both registries.

Every test first asserts which forms of signature are there: a verdict about another form than the
one meant proves nothing.
"""

from __future__ import annotations

import pytest
from interop.peers import Desk, Ended
from interop.wire import INDEX, Repository

FORMS = {"legacy": (1, 0), "bundle": (0, 1), "both": (1, 1)}
"""What `--format` writes: signatures in the legacy form, and in bundles."""

Keys = dict[str, str]

pytestmark = pytest.mark.interop("cosign2", "cosign3")


def cosign_verifies(
    desk: Desk, version: int, key: str, target: str, *, bundles: bool = True
) -> Ended:
    """Verify with cosign; version 2 needs a trusted root, even an empty one, for a bundle."""
    root = ("--trusted-root", desk.root) if version == 2 and bundles else ()
    return desk.cosign(version, "verify", "--key", f"{key}.pub", *root, target)


def cosign_signs(desk: Desk, version: int, form: str, key: str, target: str, *more: str) -> Ended:
    """Sign with cosign in one form."""
    new = f"--new-bundle-format={'true' if form == 'bundle' else 'false'}"
    root = ("--trusted-root", desk.root) if version == 2 and form == "bundle" else ()
    return desk.cosign(version, "sign", "--key", f"{key}.key", new, *root, *more, target)


@pytest.mark.parametrize("form", FORMS)
def test_cosign_believes_what_we_signed(
    desk: Desk, repository: Repository, keys: Keys, form: str
) -> None:
    subject = repository.put_image("ours", "v1")["digest"]
    printed = desk.ocipack(
        "sign", f"{repository.place}:v1", "--key", f"{keys['alice']}.key", "--format", form
    ).expect()
    assert printed == f"{repository.place}:v1@{subject}"
    assert repository.forms(subject) == FORMS[form]

    for version in (2, 3):
        for target in (f"{repository}@{subject}", f"{repository}:v1"):
            cosign_verifies(desk, version, keys["alice"], target).expect()
        refused = cosign_verifies(desk, version, keys["carol"], f"{repository}@{subject}")
        assert refused.code != 0, refused


def test_cosign_2_wants_a_trusted_root_where_a_bundle_is(
    desk: Desk, repository: Repository, keys: Keys
) -> None:
    # what the hint after `sign --format both` says, and why it says it
    subject = repository.put_image("ours")["digest"]
    target = f"{repository}@{subject}"
    signing = ("sign", f"oci://{target}", "--key", f"{keys['alice']}.key", "--format")
    desk.ocipack(*signing, "legacy").expect()
    assert repository.forms(subject) == (1, 0)
    cosign_verifies(desk, 2, keys["alice"], target, bundles=False).expect()
    desk.ocipack(*signing, "both").expect()
    assert repository.forms(subject) == (1, 1)
    refused = cosign_verifies(desk, 2, keys["alice"], target, bundles=False)
    assert refused.code == 1, refused
    assert "trusted root is required" in refused.err


@pytest.mark.parametrize("form", ["legacy", "bundle"])
@pytest.mark.parametrize("version", [2, 3])
def test_we_believe_what_cosign_signed(
    desk: Desk, repository: Repository, keys: Keys, version: int, form: str
) -> None:
    subject = repository.put_image("theirs", "v1")["digest"]
    cosign_signs(desk, version, form, keys["bob"], f"{repository}@{subject}").expect()
    assert repository.forms(subject) == FORMS[form]

    for place in (f"{repository.place}@{subject}", f"{repository.place}:v1"):
        proven = desk.ocipack("verify", place, "--key", f"{keys['bob']}.pub").expect()
        assert proven == f"{place.removesuffix(f'@{subject}')}@{subject}"
    desk.ocipack("verify", place, "--key", f"{keys['alice']}.pub").expect(1)


@pytest.mark.parametrize("form", ["legacy", "bundle"])
@pytest.mark.parametrize("version", [2, 3])
def test_an_index_signed_with_its_children(
    desk: Desk, repository: Repository, keys: Keys, version: int, form: str
) -> None:
    children = [repository.put_image(name) for name in ("one", "two")]
    document = {"schemaVersion": 2, "mediaType": INDEX, "manifests": children}
    whole = repository.put_manifest(document, "v1")
    target = f"{repository}@{whole}"
    cosign_signs(desk, version, form, keys["bob"], target, "--recursive").expect()
    for subject in [whole, *(child["digest"] for child in children)]:
        assert repository.forms(subject) == FORMS[form]
        place = f"{repository.place}@{subject}"
        assert desk.ocipack("verify", place, "--key", f"{keys['bob']}.pub").expect() == place


def test_an_index_signed_alone_says_nothing_about_its_children(
    desk: Desk, repository: Repository, keys: Keys
) -> None:
    child = repository.put_image("one")
    document = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [child]}
    whole = repository.put_manifest(document, "v1")
    desk.ocipack("sign", f"{repository.place}:v1", "--key", f"{keys['alice']}.key").expect()
    assert repository.forms(whole) == (1, 1)
    assert repository.forms(child["digest"]) == (0, 0)
    for version in (2, 3):
        cosign_verifies(desk, version, keys["alice"], f"{repository}@{whole}").expect()
    place = f"{repository.place}@{child['digest']}"
    desk.ocipack("verify", place, "--key", f"{keys['alice']}.pub").expect(1)


@pytest.mark.parametrize("form", ["legacy", "bundle"])
def test_two_signers_with_two_tools(
    desk: Desk, repository: Repository, keys: Keys, form: str
) -> None:
    subject = repository.put_image("both of us")["digest"]
    target = f"{repository}@{subject}"
    cosign_signs(desk, 2, form, keys["bob"], target).expect()
    signing = ("sign", f"oci://{target}", "--key", f"{keys['alice']}.key", "--format", form)
    desk.ocipack(*signing).expect()
    cosign_signs(desk, 3, form, keys["dave"], target).expect()
    legacy, bundles = FORMS[form]
    assert repository.forms(subject) == (3 * legacy, 3 * bundles)

    signers = [f"{keys[name]}.pub" for name in ("alice", "bob", "dave")]
    trusted = [part for key in signers for part in ("--key", key)]
    verifying = ("verify", f"oci://{target}", *trusted)
    desk.ocipack(*verifying, "--threshold", "3").expect()
    other = ("--key", f"{keys['carol']}.pub")
    desk.ocipack(*verifying, *other, "--threshold", "4").expect(1)
    for version in (2, 3):
        for name in ("alice", "bob", "dave"):
            cosign_verifies(desk, version, keys[name], target).expect()


@pytest.mark.parametrize("form", FORMS)
def test_signing_again_adds_nothing_whoever_signed_first(
    desk: Desk, repository: Repository, keys: Keys, form: str
) -> None:
    subject = repository.put_image("again")["digest"]
    target = f"{repository}@{subject}"
    if form != "bundle":
        cosign_signs(desk, 3, "legacy", keys["bob"], target).expect()
    if form != "legacy":
        cosign_signs(desk, 3, "bundle", keys["bob"], target).expect()
    assert repository.forms(subject) == FORMS[form]
    signing = ("sign", f"oci://{target}", "--key", f"{keys['bob']}.key", "--format", form)
    desk.ocipack(*signing).expect()
    assert repository.forms(subject) == FORMS[form]
