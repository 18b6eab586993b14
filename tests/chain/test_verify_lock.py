"""`verify --lock`: a lock says what to look at, signatures say what is true of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from registry import Fault, Registry

Run = Callable[..., tuple[int, str, str]]

NO, MISUSE, UNKNOWN = 1, 2, 3


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as made:
        yield made


def image(ocipack: Run, registry: Registry, name: str, key: str = "") -> str:
    """A tagged image, signed if there is a key; its pinned name."""
    Path(name).mkdir()
    Path(name, "a.yaml").write_text(f"# {name}\n")
    place = f"oci://{registry.name}/{name}"
    code, out, err = ocipack("pack", name, "--to", place, "--allow-dirty")
    assert code == 0, err
    assert ocipack("tag", out.strip(), "1", "--allow-unsigned")[0] == 0
    if key:
        assert ocipack("sign", out.strip(), "--key", key)[0] == 0
    return out.strip().removeprefix("oci://").replace("@", ":1@")


@pytest.fixture
def lock(ocipack: Run, registry: Registry, key: str) -> Callable[..., str]:
    """Pin pods of images, some signed; the lock that this writes."""

    def make(*names: str) -> str:
        pods = []
        for name in names:
            pinned = image(ocipack, registry, name, key if name.startswith("good") else "")
            pods.append(
                f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\n"
                f"spec: {{containers: [{{name: c, image: {pinned.partition('@')[0]}}}]}}\n"
            )
        Path("pods.yaml").write_text("---\n".join(pods))
        code, _, err = ocipack("pin", "pods.yaml", "--lock", "ocipack.lock")
        assert code == 0, err
        return "ocipack.lock"

    return make


def test_every_entry_is_verified(ocipack: Run, lock: Callable[..., str], public: str) -> None:
    path = lock("good-a", "good-b")
    code, out, err = ocipack("verify", "--lock", path, "--key", public, "--require-digest")
    assert code == 0, err
    places = out.split()
    assert [one.rpartition("/")[2].partition(":1@sha256:")[0] for one in places] == [
        "good-a",
        "good-b",
    ]


def test_one_that_is_not_signed_is_refused(
    ocipack: Run, lock: Callable[..., str], public: str
) -> None:
    path = lock("bad", "good")
    code, out, err = ocipack("verify", "--lock", path, "--key", public, "--output", "json")
    assert code == NO
    verdicts = [one["verdict"] for one in json.loads(out)["artifacts"]]
    assert verdicts == ["rejected", "verified"]
    assert "no signature found" in err


def test_a_lock_edited_by_hand_decides_nothing(
    ocipack: Run, registry: Registry, lock: Callable[..., str], public: str
) -> None:
    path = lock("good")
    evil = image(ocipack, registry, "evil").partition("@")[2]
    text = Path(path).read_text()
    signed = text.partition("digest: ")[2].partition("\n")[0]
    # another digest: it is looked at, and nobody has signed it
    repository = registry.repository("good")
    other = registry.repository("evil")
    repository.manifests[evil] = other.manifests[evil]
    repository.blobs |= other.blobs
    Path(path).write_text(text.replace(signed, evil))
    code, _, err = ocipack("verify", "--lock", path, "--key", public)
    assert code == NO
    assert "no signature found" in err
    assert "attached:" in text  # it still says that there is a signature
    # a digest that is not there is not known
    Path(path).write_text(text.replace(signed, "sha256:" + "0" * 64))
    assert ocipack("verify", "--lock", path, "--key", public)[0] == UNKNOWN


def test_a_policy_goes_by_the_name_in_the_lock(
    ocipack: Run, registry: Registry, lock: Callable[..., str], public: str, tmp_path: Path
) -> None:
    path = Path(lock("good"))
    path.write_text(path.read_text().replace(registry.name, "images.example.com"))
    (tmp_path / "map.yaml").write_text(f"images.example.com: {registry.name}\n")
    policy = tmp_path / "policy.yaml"
    head = "apiVersion: ocipack.dev/v1alpha1\nkind: VerificationPolicy\nmetadata: {name: p}\n"
    spec = f"spec: {{images: ['%s/*'], authorities: [{{keys: [{{file: '{public}'}}]}}]}}\n"
    line = ("verify", "--lock", str(path), "--map", "map.yaml", "--policy", str(policy))
    policy.write_text(head + spec % "images.example.com")
    code, out, err = ocipack(*line)
    assert code == 0, err
    assert out.startswith("oci://images.example.com/good:1@sha256:")
    policy.write_text(head + spec % registry.name)
    code, _, err = ocipack(*line)
    assert code == NO
    assert "no policy covers images.example.com/good:1@" in err


def test_places_and_a_lock_together(
    ocipack: Run, registry: Registry, lock: Callable[..., str], key: str, public: str
) -> None:
    path = lock("good")
    also = image(ocipack, registry, "also", key)
    code, out, _ = ocipack("verify", f"oci://{also}", "--lock", path, "--key", public)
    assert code == 0
    assert [one.rpartition("/")[2].partition(":")[0] for one in out.split()] == ["also", "good"]
    registry.switches.faults = [Fault("/good/", 500)]
    assert ocipack("verify", f"oci://{also}", "--lock", path, "--key", public)[0] == UNKNOWN


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ((), MISUSE, "it is not said what to verify"),
        (("--lock", "gone.lock"), MISUSE, "gone.lock: no such file"),
        (("--lock", "empty.lock"), NO, "the lock is empty"),
        (("--lock", "bad.lock"), MISUSE, "bad.lock:1:1"),
        (("--lock", "empty.lock", "--contents"), MISUSE, "exclude each other"),
        (("ocidir://s", "--map", "m"), MISUSE, "--map belongs to --contents and --lock"),
    ],
)
def test_what_is_no_lock(
    ocipack: Run, public: str, line: tuple[str, ...], code: int, words: str
) -> None:
    head = "apiVersion: ocipack.dev/v1alpha1\nkind: Lock\n"
    Path("empty.lock").write_text(head + "entries: []\n")
    Path("bad.lock").write_text("- a\n")
    found, _, err = ocipack("verify", "--key", public, *line)
    assert found == code, err
    assert words in err
