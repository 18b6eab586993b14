"""The closure of trust on real registries: images that cosign signed, inside what we signed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from interop.peers import NO_LOG, NO_LOG_2, Desk
from interop.wire import Repository

pytestmark = pytest.mark.interop("cosign2", "cosign3")


def pod(name: str, image: str) -> str:
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: d}}\n"
        f"spec: {{containers: [{{name: c, image: {image}}}]}}\n"
    )


def artifact(desk: Desk, repository: Repository, key: str, *images: str) -> str:
    """An artifact that names `images`, signed; its pinned place."""
    top = desk.folder / "tree"
    top.mkdir(exist_ok=True)
    for number, image in enumerate(images):
        (top / f"{number}.yaml").write_text(pod(f"p{number}", image))
    place = desk.ocipack("pack", str(top), "--to", repository.place, "--allow-dirty").expect()
    desk.ocipack("sign", place, "--key", f"{key}.key").expect()
    return place


def policy(path: Path, name: str, images: str, key: str, contents: str = "") -> str:
    path.write_text(
        "apiVersion: ocipack.dev/v1alpha1\nkind: VerificationPolicy\n"
        f"metadata: {{name: {name}}}\nspec:\n  images: ['{images}']\n"
        f"  authorities: [{{keys: [{{file: '{key}.pub'}}]}}]\n{contents}"
    )
    return str(path)


def test_images_that_cosign_signed_inside_what_we_signed(
    desk: Desk, repository: Repository, keys: dict[str, str]
) -> None:
    names = {}
    for version, form in ((2, "legacy"), (3, "bundle")):
        stem = f"{repository.name}/v{version}"
        images = Repository(repository.host, stem)
        digest = images.put_image(f"image {version}", "1")["digest"]
        new = f"--new-bundle-format={'true' if form == 'bundle' else 'false'}"
        offline = NO_LOG if version == 3 else NO_LOG_2
        said = ("sign", "--key", f"{keys['bob']}.key", new, *offline, f"{images}@{digest}")
        desk.tool(f"cosign{version}", *said).expect()
        assert images.forms(digest) == ((1, 0) if form == "legacy" else (0, 1))
        names[version] = f"{images}:1@{digest}"
    bare = Repository(repository.host, f"{repository.name}/bare")
    unsigned = f"{bare}:1@{bare.put_image('nobody', '1')['digest']}"

    inside = policy(desk.folder / "i.yaml", "images", f"{repository}/**", keys["bob"])
    whole = policy(
        desk.folder / "w.yaml", "artifact", str(repository), keys["alice"],
        f"  contents: {{images: ['{repository.host}/**'], verified: true}}\n",
    )  # fmt: skip
    asked = ("--policy", whole, "--policy", inside, "--contents", "--output", "json")
    place = artifact(desk, repository, keys["alice"], *names.values())
    found = json.loads(desk.ocipack("verify", place, *asked).expect())
    [one] = found["artifacts"]
    assert one["verdict"] == "verified"
    assert {
        part["text"]: part["verdict"] for part in one["contents"]["references"]
    } == dict.fromkeys(names.values(), "allowed")

    place = artifact(desk, repository, keys["alice"], *names.values(), unsigned)
    refused = json.loads(desk.ocipack("verify", place, *asked).expect(1))
    [one] = refused["artifacts"]
    verdicts = {part["text"]: part["verdict"] for part in one["contents"]["references"]}
    assert verdicts == {names[2]: "allowed", names[3]: "allowed", unsigned: "refused"}
    # signed by one whose key is for artifacts, not for images
    desk.ocipack("sign", f"oci://{unsigned}", "--key", f"{keys['alice']}.key").expect()
    desk.ocipack("verify", place, *asked).expect(1)
