"""`ocipack airgap`: from one registry to another that knows nothing of the first, or refused."""

from __future__ import annotations

import hashlib
import io
import json
import random
import re
import socket
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import shelf
from content import image, index
from registry import Registry, Switches

from ocipack.airgap import check
from ocipack.copy import copy
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.reference import Reference
from ocipack.stores.memory import MemoryStore
from ocipack.stores.registry.registries import Registries

Run = Callable[..., tuple[int, str, str]]

WITH, WITHOUT = Switches(), Switches(referrers=False)
MiB = 1024 * 1024


class Far:
    """A registry with an index of two images, `team/app:v1`, and an image `team/web:v1`."""

    def __init__(self, registry: Registry) -> None:
        self.registry, self.name = registry, registry.name
        self.memory = MemoryStore()
        base = b"base" * 50_000
        self.children = [image(self.memory, base, b"%d" % n) for n in range(2)]
        self.root = index(self.memory, *self.children)
        self.web = image(self.memory, base, b"web" * 1000)
        self.put("team/app", self.root)
        self.put("team/web", self.web)

    def put(self, repository: str, root: Descriptor, tag: str = "v1") -> None:
        reference = Reference.parse(f"{self.name}/{repository}")
        copy(self.memory, Registries().store(reference, writes=True), root, tag=tag)

    @property
    def places(self) -> list[str]:
        return [f"oci://{self.name}/team/app:v1", f"oci://{self.name}/team/web:v1"]

    def everything(self) -> list[str]:
        """Each manifest, the children of the index too."""
        children = [f"oci://{self.name}/team/app@{one.digest}" for one in self.children]
        return [*self.places, *children]


@pytest.fixture
def cleanup() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def far_in(cleanup: ExitStack, switches: Switches = WITH) -> Far:
    return Far(cleanup.enter_context(Registry(switches)))


@pytest.fixture
def far(cleanup: ExitStack) -> Far:
    return far_in(cleanup)


@pytest.fixture
def near(cleanup: ExitStack) -> Registry:
    """The registry on the other side."""
    return cleanup.enter_context(Registry(WITH))


@pytest.fixture
def signed(far: Far, ocipack: Run, key: str) -> Far:
    """The same, with all signed in both forms."""
    for place in far.everything():
        assert ocipack("sign", place, "--key", key)[0] == 0
    return far


@pytest.fixture
def site(signed: Far, ocipack: Run, public: str, tmp_path: Path) -> Path:
    """An archive of all that."""
    code, out, err = ocipack("airgap", "save", *signed.places, "-o", "site.tar", "--key", public)
    assert (code, out) == (0, "site.tar\n"), err
    return tmp_path / "site.tar"


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Callable[[Registry | None], None]:
    """From here on a connection to anything but this registry, or any look-up, fails the test."""

    allowed: set[int] = set()
    connect, lookup = socket.socket.connect, socket.getaddrinfo

    def connected(self: socket.socket, address: Any) -> None:
        assert address[0] == "127.0.0.1", f"a connection to {address}"
        assert address[1] in allowed, f"a connection to {address}"
        connect(self, address)

    def looked_up(host: str, *rest: Any, **more: Any) -> Any:
        assert host == "127.0.0.1", f"a look-up of {host}"
        return lookup(host, *rest, **more)

    def guard(registry: Registry | None) -> None:
        allowed.clear()
        if registry is not None:
            allowed.add(int(registry.name.rpartition(":")[2]))
        monkeypatch.setattr(socket.socket, "connect", connected)
        monkeypatch.setattr(socket, "getaddrinfo", looked_up)

    return guard


def there(far: Far, near: Registry, repository: str = "team/app") -> str:
    return f"{near.name}/base/{far.name.replace(':', '-')}/{repository}"


def policy(path: Path, key: str, *forms: str) -> Path:
    path.write_text(
        "apiVersion: ocipack.dev/v1alpha1\nkind: VerificationPolicy\nmetadata: {name: p}\n"
        f"spec:\n  images: ['**']\n  authorities:\n    - keys: [{{file: '{key}'}}]\n"
        + (f"      formats: [{', '.join(forms)}]\n" if forms else "")
    )
    return path


# over the gap


@pytest.mark.parametrize("form", ["legacy", "bundle", "both"])
@pytest.mark.parametrize("target", [WITH, WITHOUT], ids=["referrers", "no referrers"])
@pytest.mark.parametrize("source", [WITH, WITHOUT], ids=["from referrers", "from none"])
def test_signatures_of_an_index_and_its_children_arrive_in_each_form(
    cleanup: ExitStack,
    ocipack: Run,
    key: str,
    public: str,
    tmp_path: Path,
    only: Callable[[Registry | None], None],
    form: str,
    source: Switches,
    target: Switches,
) -> None:
    far, near = far_in(cleanup, source), cleanup.enter_context(Registry(target))
    for place in far.everything():
        assert ocipack("sign", place, "--key", key, "--format", form)[0] == 0
    forms = ["legacy", "bundle"] if form == "both" else [form]
    assert ocipack("airgap", "save", *far.places, "-o", "site.tar", "--key", public)[0] == 0
    far.registry.__exit__(None, None, None)  # it is on the other side
    for number, one in enumerate(forms):
        asked = str(policy(tmp_path / f"{number}.yaml", public, one))
        only(None)
        assert ocipack("airgap", "verify", "site.tar", "--policy", asked)[0] == 0
        only(near)
        code, out, err = ocipack(
            *("airgap", "load", "site.tar", "--to", f"oci://{near.name}/base"),
            *("--policy", asked, "--allow-example-key"),
        )
        assert code == 0, err
        assert out.count("skipped " if number else "copied ") == 2
        for name in far.everything():
            here = name.replace(f"{far.name}/", f"{near.name}/base/{far.name.replace(':', '-')}/")
            code, _, err = ocipack("verify", here, "--policy", asked, "--content")
            assert code == 0, err


def test_nothing_is_asked_of_any_network_but_the_target(
    signed: Far,
    near: Registry,
    site: Path,
    ocipack: Run,
    public: str,
    only: Callable[[Registry | None], None],
) -> None:
    before = signed.registry.lines()
    only(None)
    assert ocipack("airgap", "verify", str(site), "--key", public)[0] == 0
    assert ocipack("airgap", "list", str(site))[0] == 0
    assert ocipack("airgap", "diff", str(site), str(site))[0] == 0
    assert ocipack("airgap", "files", str(site), "-o", "files")[0] == 0
    only(near)
    assert (
        ocipack("airgap", "load", str(site), "--to", f"oci://{near.name}", "--key", public)[0] == 0
    )
    assert signed.registry.lines() == before


def test_what_arrives_is_what_was_there(
    signed: Far, near: Registry, site: Path, ocipack: Run, public: str
) -> None:
    ocipack("airgap", "load", str(site), "--to", f"oci://{near.name}/base", "--key", public)
    for repository in ("team/app", "team/web"):
        ours = signed.registry.repository(repository)
        theirs = near.repository(there(signed, near, repository).partition("/")[2])
        assert theirs.manifests == ours.manifests
        assert theirs.tags == ours.tags
        assert set(theirs.blobs) >= set(ours.blobs)


def test_a_second_load_sends_nothing(near: Registry, site: Path, ocipack: Run, public: str) -> None:
    load = ("airgap", "load", str(site), "--to", f"oci://{near.name}/base", "--key", public)
    assert ocipack(*load)[0] == 0
    before = len(near.lines())
    code, out, err = ocipack(*load)
    assert (code, out.count("skipped ")) == (0, 2)
    assert "2 skipped; 0 B" in err
    again = near.lines()[before:]
    assert again
    assert [line for line in again if not re.match(r"GET|HEAD", line)] == []


# damage


def test_whatever_is_damaged_nothing_is_written_at_the_target(
    near: Registry, site: Path, ocipack: Run, public: str
) -> None:
    raw = site.read_bytes()
    dice = random.Random(1)
    with tarfile.open(site) as archive:
        content = [(m.offset_data, m.size) for m in archive]
    places = [offset + dice.randrange(size) for offset, size in content]
    places += [dice.randrange(len(raw)) for _ in range(20)]
    for place in places:
        spoiled = bytearray(raw)
        spoiled[place] ^= 1 << dice.randrange(8)
        site.write_bytes(spoiled)
        before = len(near.lines())
        code, out, err = ocipack(
            "airgap", "load", str(site), "--to", f"oci://{near.name}/base", "--key", public
        )
        padding = all(not offset <= place < offset + size for offset, size in content)
        assert (code, out) == (1, "") or (padding and code == 0), (place, err)
        if code == 1:  # 0 is for a bit that no reader looks at, such as the time in a header
            assert len(near.lines()) == before


@pytest.mark.parametrize("kept", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_an_archive_that_was_cut_short_is_refused(
    near: Registry, site: Path, ocipack: Run, public: str, kept: float
) -> None:
    raw = site.read_bytes()
    site.write_bytes(raw[: int(len(raw) * kept)])
    for command in (
        ("airgap", "load", str(site), "--to", f"oci://{near.name}/base", "--key", public),
        ("airgap", "verify", str(site), "--key", public),
        ("airgap", "list", str(site)),
    ):
        code, out, err = ocipack(*command)
        assert (code, out) == (1, ""), err
        assert "bring it again" in err
    assert near.lines() == []


# trust


def test_what_nobody_signed_is_not_saved(far: Far, ocipack: Run, public: str, key: str) -> None:
    assert ocipack("sign", far.places[0], "--key", key)[0] == 0
    code, out, err = ocipack("airgap", "save", *far.places, "-o", "site.tar", "--key", public)
    assert (code, out) == (1, "")
    assert "team/web:v1" in err
    assert "no signature found" in err
    assert list(Path().glob("*site.tar*")) == []


def test_everything_that_cannot_be_saved_is_named(far: Far, ocipack: Run, public: str) -> None:
    gone = f"oci://{far.name}/team/gone:v1"
    code, _, err = ocipack("airgap", "save", *far.places, gone, "-o", "site.tar", "--key", public)
    assert code == 1
    assert all(f"{name}" in err for name in ("team/app:v1", "team/web:v1", "team/gone"))


def test_an_archive_of_unsigned_things_is_loaded_only_if_it_may_be(
    far: Far, near: Registry, ocipack: Run, public: str
) -> None:
    save = ("airgap", "save", *far.places, "-o", "site.tar")
    assert ocipack(*save)[0] == 2
    assert ocipack(*save, "--allow-unsigned", "--key", public)[0] == 2
    code, _, err = ocipack(*save, "--allow-unsigned")
    assert code == 0
    assert "0 items proven, 2 exempted" in err
    load = ("airgap", "load", "site.tar", "--to", f"oci://{near.name}/base")
    code, _, err = ocipack(*load)
    assert code == 2
    assert "neither --key nor --policy says who must have signed" in err
    code, out, _ = ocipack(*load, "--key", public)
    assert (code, out) == (1, "")
    assert ocipack("airgap", "verify", "site.tar", "--key", public)[0] == 1
    assert near.lines() == []
    assert ocipack(*load, "--allow-unsigned")[0] == 0


def test_the_policy_in_an_archive_is_no_authority(
    far: Far, near: Registry, ocipack: Run, tmp_path: Path, public: str
) -> None:
    passing = tmp_path / "pass.yaml"
    passing.write_text(
        "apiVersion: ocipack.dev/v1alpha1\nkind: VerificationPolicy\nmetadata: {name: p}\n"
        "spec:\n  images: ['**']\n  static: pass\n  reason: an attacker wrote it\n"
    )
    policies = ("--policy", str(passing))
    save = ("airgap", "save", *far.places, "-o", "site.tar", *policies)
    assert ocipack(*save)[0] == 1, "what is exempted is not proven"
    assert ocipack(*save, "--allow-exempted")[0] == 0
    load = ("airgap", "load", "site.tar", "--to", f"oci://{near.name}/base")
    assert ocipack(*load)[0] == 2
    assert ocipack(*load, "--key", public)[0] == 1
    assert ocipack(*load, *policies)[0] == 1
    assert near.lines() == []


def test_policies_are_about_names_at_the_origin(
    signed: Far, near: Registry, site: Path, ocipack: Run, public: str, tmp_path: Path
) -> None:
    for name, code in ((signed.name, 0), (near.name, 1)):
        path = policy(tmp_path / "p.yaml", public)
        path.write_text(path.read_text().replace("'**'", f"'{name}/**'"))
        load = ("airgap", "load", str(site), "--to", f"oci://{near.name}/base")
        assert ocipack(*load, "--policy", str(path))[0] == code


# what can be named


def test_a_layout_is_saved_too(
    near: Registry, ocipack: Run, hello: Path, key: str, public: str
) -> None:
    code, _, err = ocipack(
        "ship", str(hello), "--to", "ocidir://built:v1", "--key", key, "--allow-dirty"
    )
    assert code == 0, err
    assert ocipack("airgap", "save", "ocidir://built:v1", "-o", "s.tar", "--key", public)[0] == 0
    code, out, _ = ocipack("airgap", "list", "s.tar")
    assert code == 0
    assert out.startswith("localhost/built:v1@sha256:")
    assert "1 file" not in out
    load = ("airgap", "load", "s.tar", "--to", f"oci://{near.name}", "--key", public)
    assert ocipack(*load)[0] == 0
    assert ocipack("verify", f"oci://{near.name}/localhost/built:v1", "--key", public)[0] == 0


def test_a_lock_names_everything_and_comes_along(
    signed: Far, ocipack: Run, public: str, tmp_path: Path
) -> None:
    pods = tmp_path / "pods.yaml"
    pods.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n"
        + "".join(
            f"  - name: c{n}\n    image: {place.removeprefix('oci://')}\n"
            for n, place in enumerate(signed.places)
        )
    )
    assert ocipack("pin", str(pods), "--lock", "ocipack.lock")[0] == 0
    save = ("airgap", "save", "--lock", "ocipack.lock", "-o", "site.tar", "--key", public)
    assert ocipack(*save)[0] == 0
    code, out, _ = ocipack("airgap", "list", "site.tar")
    assert code == 0
    assert [line.split("@")[0] for line in out.splitlines()] == [
        f"{signed.name}/team/app:v1",
        f"{signed.name}/team/web:v1",
    ]
    assert ocipack("airgap", "files", "site.tar", "-o", "files")[:2] == (0, "files\n")
    (lock,) = Path("files").rglob("ocipack.lock")
    assert lock.read_bytes() == Path("ocipack.lock").read_bytes()


def test_a_mirror_file_picks_and_mirrors_are_asked(
    signed: Far, ocipack: Run, public: str, tmp_path: Path
) -> None:
    mirror = tmp_path / "mirror.yaml"
    mirror.write_text(
        "apiVersion: ocipack.dev/v1alpha1\nkind: Mirror\nto: oci://other.example/x\nsources:\n"
        "- image: quay.io/team/app\n  select: {pattern: 'v(\\d+)'}\n"
        "- image: quay.io/team/web\n  tags: [v1]\n"
    )
    (tmp_path / "map.yaml").write_text(f'"quay.io": "{signed.name}"\n')
    code, _, err = ocipack(
        *("airgap", "save", "-f", "mirror.yaml", "--map", "map.yaml", "-o", "site.tar"),
        *("--key", public),
    )
    assert code == 0, err
    code, out, _ = ocipack("airgap", "list", "site.tar")
    assert [line.split("@")[0] for line in out.splitlines()] == [
        "quay.io/team/app:v1",
        "quay.io/team/web:v1",
    ]


def test_a_policy_and_its_keys_come_along(
    signed: Far, ocipack: Run, public: str, tmp_path: Path
) -> None:
    (tmp_path / "trust/keys").mkdir(parents=True)
    (tmp_path / "trust/policies").mkdir()
    (tmp_path / "trust/keys/team.pub").write_bytes(Path(public).read_bytes())
    (tmp_path / "root.json").write_text("{}")
    path = policy(tmp_path / "trust/policies/p.yaml", "../keys/team.pub")
    code, _, err = ocipack(
        *("airgap", "save", *signed.places, "-o", "site.tar", "--policy", str(path)),
        *("--with", "root.json"),
    )
    assert code == 0, err
    assert ocipack("airgap", "files", "site.tar", "-o", "files")[0] == 0
    found = sorted(str(one) for one in Path("files").rglob("*") if one.is_file())
    assert found == [
        "files/files/root.json",
        "files/policies/1/keys/team.pub",
        "files/policies/1/policy/p.yaml",
    ]
    again = ("--policy", "files/policies/1/policy/p.yaml")
    assert ocipack("airgap", "verify", "site.tar", *again)[0] == 0


def test_what_comes_along_says_nothing_of_where_it_lay(
    signed: Far, ocipack: Run, public: str, tmp_path: Path
) -> None:
    raw = Path(public).read_bytes()
    for folder in ("here", "some/where/else"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "cosign.pub").write_bytes(raw)
        key = ("--key", str(tmp_path / folder / "cosign.pub"))
        save = ("airgap", "save", *signed.places, "-o", f"{folder}/site.tar", *key)
        assert ocipack(*save)[0] == 0
    one, other = (tmp_path / name / "site.tar" for name in ("here", "some/where/else"))
    assert one.read_bytes() == other.read_bytes()
    twice = tmp_path / "some/cosign.pub"
    twice.write_bytes(b"another")
    save = ("airgap", "save", *signed.places, "-o", "x.tar", "--with", str(twice))
    code, _, err = ocipack(*save, "--with", public, "--key", public)
    assert code == 2
    assert "another file comes along as files/cosign.pub already" in err


def test_a_private_key_never_comes_along(signed: Far, ocipack: Run, key: str, public: str) -> None:
    both = Path("both.pub")
    both.write_bytes(Path(public).read_bytes() + Path(key).read_bytes())
    for given in (key, str(both)):
        save = ("airgap", "save", *signed.places, "-o", "x.tar", "--key", given)
        assert ocipack(*save)[0] == 2
    assert list(Path().glob("*x.tar*")) == []


def test_what_is_attached_is_saved_with_what_it_is_attached_to(signed: Far, ocipack: Run) -> None:
    place = f"oci://{signed.name}/team/app:sha256-{signed.root.digest.hex}.sig"
    code, _, err = ocipack("airgap", "save", place, "-o", "x.tar", "--allow-unsigned")
    assert code == 2
    assert "save what it is attached to" in err


def test_registries_that_the_project_does_not_list_are_not_asked(
    signed: Far, ocipack: Run, public: str, tmp_path: Path
) -> None:
    project = tmp_path / "ocipack.yaml"
    save = ("airgap", "save", *signed.places, "-o", "site.tar", "--key", public)
    project.write_text("apiVersion: ocipack.dev/v1alpha1\nregistries: [registry.example.com]\n")
    count = len(signed.registry.lines())
    code, _, err = ocipack(*save)
    assert code == 1, err
    assert len(signed.registry.lines()) == count
    project.write_text(f"apiVersion: ocipack.dev/v1alpha1\nregistries: ['{signed.name}']\n")
    assert ocipack(*save)[0] == 0


def test_a_dry_run_of_each_writes_nothing(
    signed: Far, near: Registry, site: Path, ocipack: Run, public: str
) -> None:
    code, out, err = ocipack(
        "airgap", "save", *signed.places, "-o", "dry.tar", "--key", public, "--dry-run"
    )
    assert (code, out.splitlines()) == (0, [place[6:] for place in signed.places])
    assert "2 items" in err
    assert list(Path().glob("*dry.tar*")) == []
    load = ("airgap", "load", str(site), "--to", f"oci://{near.name}/base", "--key", public)
    code, out, _ = ocipack(*load, "--dry-run", "--map-out", "map.yaml")
    assert (code, [line.split()[0] for line in out.splitlines()]) == (0, ["would-copy"] * 2)
    assert [line for line in near.lines() if not re.match(r"GET|HEAD", line)] == []
    assert not Path("map.yaml").exists()


@pytest.mark.parametrize("form", ["legacy", "bundle"])
def test_an_archive_is_a_layout_for_the_other_commands(
    signed: Far, site: Path, ocipack: Run, public: str, tmp_path: Path, form: str
) -> None:
    trust = ("--policy", str(policy(tmp_path / "p.yaml", public, form)))
    for digest in (signed.root.digest, signed.web.digest):
        code, _, err = ocipack("verify", f"ocidir://{site}@{digest}", *trust)
        assert code == 0, err


def test_a_list_of_digests_that_is_too_long(
    far: Far, ocipack: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 64 * MiB == check.LIST_BYTES
    monkeypatch.setattr(check, "LIST_BYTES", 100)
    Path("list").write_text("ocipack-airgap sha256:" + "0" * 64 + "\n" + "x" * 50)
    save = ("airgap", "save", *far.places, "-o", "x.tar", "--allow-unsigned", "--since", "list")
    code, _, err = ocipack(*save)
    assert code == 2
    assert "more than the 100 bytes" in err


def test_the_images_of_a_chart_come_along(signed: Far, ocipack: Run) -> None:
    values = (
        f"image: {{registry: '{signed.name}', repository: team/web, tag: v1}}\n"
        f"sidecar: {{image: '{signed.name}/team/gone:v1'}}\n"
    )
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        meta = "apiVersion: v2\nname: shop\nversion: 1.0.0\n"
        for name, text in (("Chart.yaml", meta), ("values.yaml", values)):
            member = tarfile.TarInfo(f"shop/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    repository = "charts/shop"
    config = shelf.blob(
        signed.registry, repository, b"{}", "application/vnd.cncf.helm.config.v1+json"
    )
    kind = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
    layer = shelf.blob(signed.registry, repository, data.getvalue(), kind)
    document = {"mediaType": shelf.MANIFEST, "config": config, "layers": [layer]}
    shelf.put(signed.registry, repository, document, "1.0.0")
    place = f"oci://{signed.name}/{repository}:1.0.0"
    save = ("airgap", "save", place, "--contents", "-o", "site.tar", "--allow-unsigned")
    code, _, err = ocipack(*save)
    assert code == 3
    assert "team/gone" in err
    code, _, err = ocipack(*save, "--without", f"{signed.name}/team/gone")
    assert code == 0, err
    assert f"left out: {signed.name}/team/gone:v1" in err
    code, out, _ = ocipack("airgap", "list", "site.tar")
    assert [line.partition("@")[0] for line in out.splitlines()] == [
        f"{signed.name}/charts/shop:1.0.0",
        f"{signed.name}/team/web:v1",
    ]


def test_nothing_to_save(ocipack: Run, public: str) -> None:
    code, _, err = ocipack("airgap", "save", "-o", "site.tar", "--key", public)
    assert code == 2
    assert "nothing to save" in err


def test_names_without_their_registry(
    signed: Far, near: Registry, site: Path, ocipack: Run, public: str
) -> None:
    load = ("airgap", "load", str(site), "--to", f"oci://{near.name}/base", "--key", public)
    code, out, _ = ocipack(*load, "--names", "path", "--map-out", "map.yaml")
    assert code == 0
    assert f"oci://{near.name}/base/team/app:v1@{signed.root.digest}" in out
    assert Path("map.yaml").read_text() == (
        f'"{signed.name}/team/app": "{near.name}/base/team/app"\n'
        f'"{signed.name}/team/web": "{near.name}/base/team/web"\n'
    )


@pytest.mark.parametrize(
    "target", ["ocidir://x", "registry.example", "oci://", "oci://x y", "oci://a.example/b:v1"]
)
def test_targets_that_are_none(site: Path, ocipack: Run, public: str, target: str) -> None:
    assert ocipack("airgap", "load", str(site), "--to", target, "--key", public)[0] == 2


def test_a_tag_that_stands_for_something_else(
    signed: Far, near: Registry, site: Path, ocipack: Run, public: str
) -> None:
    theirs = there(signed, near, "team/web")
    reference = Reference.parse(theirs)
    copy(signed.memory, Registries().store(reference, writes=True), signed.root, tag="v1")
    load = ("airgap", "load", str(site), "--to", f"oci://{near.name}/base", "--key", public)
    code, out, err = ocipack(*load, "--map-out", "map.yaml", "--output", "json=r.json")
    assert code == 1
    assert "error[mirror-drifted]" in err
    assert not Path("map.yaml").exists()
    result = json.loads(Path("r.json").read_text())
    assert result["counts"] == {"copied": 1, "drifted": 1}
    assert [line.split()[0] for line in out.splitlines()] == ["copied", "drifted"]
    path = theirs.partition("/")[2]
    assert near.repository(path).tags["v1"] == str(signed.root.digest)
    assert ocipack(*load, "--overwrite")[0] == 0
    assert near.repository(path).tags["v1"] == str(signed.web.digest)


# volumes, and what an earlier archive had


def test_volumes(near: Registry, far: Far, ocipack: Run) -> None:
    large = image(far.memory, random.Random(2).randbytes(3 * MiB))
    far.put("team/large", large)
    code, out, err = ocipack(
        *("airgap", "save", f"oci://{far.name}/team/large:v1", "-o", "v.tar"),
        *("--allow-unsigned", "--volume-size", "1MiB", "--output", "json=r.json"),
    )
    assert (code, out) == (0, "v.tar\n"), err
    said = json.loads(Path("r.json").read_text())["archive"]
    listed = Path("v.tar.sha256").read_text()
    assert listed == "".join(f"{one['sha256']}  {one['path']}\n" for one in said["files"])
    assert [one["path"] for one in said["files"]] == [f"v.tar.00{n}" for n in range(1, 5)]
    assert said["size"] == sum(Path(one["path"]).stat().st_size for one in said["files"])
    load = ("airgap", "load", "v.tar", "--to", f"oci://{near.name}/base", "--allow-unsigned")
    two = Path("v.tar.002").read_bytes()
    Path("v.tar.002").write_bytes(two[:-1] + bytes([two[-1] ^ 1]))
    code, _, err = ocipack(*load)
    assert code == 1
    assert "v.tar.002: its checksum is" in err
    Path("v.tar.002").unlink()
    code, _, err = ocipack(*load)
    assert code == 3
    assert "volume 2 of 4 is missing" in err
    assert near.lines() == []
    Path("v.tar.002").write_bytes(two)
    assert ocipack(*load)[0] == 0


@pytest.mark.parametrize("size", ["0", "5", "1KiB", "x", "-1MiB", "1 MiB", "1048575"])
def test_sizes_of_volumes_that_are_none(far: Far, ocipack: Run, size: str) -> None:
    save = ("airgap", "save", *far.places, "-o", "x.tar", "--allow-unsigned")
    code, _, err = ocipack(*save, "--volume-size", size)
    assert code == 2
    assert "--volume-size" in err


@pytest.mark.parametrize("by_list", [False, True], ids=["archive", "list"])
def test_only_what_is_new_crosses_the_gap(
    signed: Far,
    near: Registry,
    ocipack: Run,
    public: str,
    *,
    by_list: bool,
) -> None:
    first, second = signed.places
    assert ocipack("airgap", "save", first, "-o", "one.tar", "--key", public)[0] == 0
    since = "one.tar"
    if by_list:
        code, out, _ = ocipack("airgap", "list", "one.tar", "--digests")
        assert code == 0
        Path("one.digests").write_text(out)
        since = "one.digests"
    delta = ("airgap", "save", first, second, "-o", "two.tar", "--key", public)
    code, _, err = ocipack(*delta, "--since", since, "--output", "json=r.json")
    assert code == 0
    assert "left out" in err
    base = "sha256:" + hashlib.sha256(b"base" * 50_000).hexdigest()
    said = json.loads(Path("r.json").read_text())["archive"]
    assert said["leftOut"]["count"] == 5
    with tarfile.open("two.tar") as archive:
        assert f"blobs/sha256/{base[7:]}" not in archive.getnames()
    assert Path("two.tar").stat().st_size < 100_000 < Path("one.tar").stat().st_size

    code, _, err = ocipack("airgap", "verify", "two.tar", "--key", public)
    assert code == 0
    assert "5 blobs were left out" in err
    with_both = ("airgap", "verify", "two.tar", "--key", public, "--since", "one.tar")
    assert ocipack(*with_both)[0] == 0
    raw = Path("one.tar").read_bytes()
    at = raw.index(b"base" * 1000) + 1000
    Path("one.tar").write_bytes(raw[:at] + b"X" + raw[at + 1 :])
    code, _, err = ocipack(*with_both)
    assert code == 1
    assert base in err
    Path("one.tar").write_bytes(raw)
    load = ("airgap", "load", "two.tar", "--to", f"oci://{near.name}/base", "--key", public)
    code, out, err = ocipack(*load)
    assert code == 1
    assert "load that archive first" in err
    assert [line for line in near.lines() if not re.match(r"GET|HEAD", line)] == []

    before = ("airgap", "load", "one.tar", "--to", f"oci://{near.name}/base", "--key", public)
    assert ocipack(*before)[0] == 0
    count = len(near.lines())
    code, out, err = ocipack(*load)
    assert code == 0, err
    sent = near.lines()[count:]
    web = there(signed, near, "team/web").partition("/")[2]
    assert [
        line
        for line in sent
        if f"mount={base.replace(':', '%3A')}" in line or f"mount={base}" in line
    ]
    assert not [line for line in sent if line.startswith("PUT") and base[7:] in line]
    assert near.repository(web).tags["v1"] == str(signed.web.digest)
    assert ocipack("verify", f"oci://{near.name}/{web}:v1", "--key", public, "--content")[0] == 0


def test_a_registry_that_does_not_mount_needs_the_earlier_archive(
    signed: Far, cleanup: ExitStack, ocipack: Run, public: str
) -> None:
    near = cleanup.enter_context(Registry(Switches(mount=False)))
    first, second = signed.places
    assert ocipack("airgap", "save", first, "-o", "one.tar", "--key", public)[0] == 0
    delta = ("airgap", "save", second, "-o", "two.tar", "--key", public)
    assert ocipack(*delta, "--since", "one.tar")[0] == 0
    to = ("--to", f"oci://{near.name}/base", "--key", public)
    assert ocipack("airgap", "load", "one.tar", *to)[0] == 0
    code, _, err = ocipack("airgap", "load", "two.tar", *to)
    assert code == 1
    assert "load that one first, or name it with --since" in err
    web = near.repository(there(signed, near, "team/web").partition("/")[2])
    assert web.tags == {}
    assert ocipack("airgap", "load", "two.tar", *to, "--since", "one.tar")[0] == 0
    assert web.tags["v1"] == str(signed.web.digest)


def test_another_archive_is_not_the_one_that_is_needed(
    signed: Far, ocipack: Run, public: str
) -> None:
    first, second = signed.places
    for name, place in (("one.tar", first), ("other.tar", second)):
        assert ocipack("airgap", "save", place, "-o", name, "--key", public)[0] == 0
    delta = ("airgap", "save", second, "-o", "two.tar", "--key", public, "--since", "one.tar")
    assert ocipack(*delta)[0] == 0
    verify = ("airgap", "verify", "two.tar", "--key", public, "--since", "other.tar")
    code, _, err = ocipack(*verify)
    assert code == 2
    assert "is not the archive that this one builds on" in err


# going on, and what is said


def test_an_archive_that_is_there(site: Path, signed: Far, ocipack: Run, public: str) -> None:
    before = site.read_bytes()
    save = ("airgap", "save", *signed.places, "-o", "site.tar", "--key", public)
    code, _, err = ocipack(*save)
    assert code == 1
    assert "--force replaces it" in err
    assert ocipack(*save, "--force")[0] == 0
    assert site.read_bytes() == before


def test_a_save_that_was_cut_goes_on_without_fetching_again(
    signed: Far, site: Path, ocipack: Run, public: str
) -> None:
    whole = site.read_bytes()
    half = len(whole) // 2
    site.rename(".site.tar.partial")
    Path(".site.tar.partial").write_bytes(whole[:half])
    count = len(signed.registry.lines())
    save = ("airgap", "save", *signed.places, "-o", "site.tar", "--key", public)
    code, _, err = ocipack(*save)
    assert code == 0
    assert "there already" in err
    assert site.read_bytes() == whole
    fetched = [line for line in signed.registry.lines()[count:] if "/blobs/" in line]
    with tarfile.open(site) as archive:
        kept = [m.name for m in archive if m.offset_data + m.size <= half]
    digests = [name.rpartition("/")[2] for name in kept if name.startswith("blobs/")]
    proving = signed.registry.repository("team/app").manifests
    assert len(digests) > 5
    assert proving
    base = hashlib.sha256(b"base" * 50_000).hexdigest()
    if base in digests:
        assert not [line for line in fetched if base in line]


def test_what_is_in_an_archive(site: Path, signed: Far, ocipack: Run) -> None:
    code, out, _ = ocipack("airgap", "list", str(site), "--output", "json=r.json")
    assert code == 0
    assert (
        out.splitlines()[0]
        == (f"{signed.name}/team/app:v1@{signed.root.digest}  204.7 KiB  2 signatures  index")
        or "2 signatures  index" in out
    )
    said = json.loads(Path("r.json").read_text())
    app, web = said["items"]
    assert app["reference"] == f"{signed.name}/team/app:v1@{signed.root.digest}"
    assert app["mediaType"] == "application/vnd.oci.image.index.v1+json"
    assert app["contents"]["signatures"] == 6
    assert app["contents"]["digest tags"] == 3
    assert app["signatures"] == web["signatures"] == 2
    assert web["artifactType"] == "application/vnd.oci.image.config.v1+json"
    assert said["archive"]["files"] == ["keys/cosign.pub"]


def test_who_signed_what_is_in_an_archive(site: Path, ocipack: Run, public: str) -> None:
    verify = ("airgap", "verify", str(site), "--output", "json=r.json")
    assert ocipack(*verify, "--key", public)[0] == 0
    items = json.loads(Path("r.json").read_text())["items"]
    assert [one["verdict"] for one in items] == ["verified"] * 2
    assert {len(one["signers"]) for one in items} == {1}
    assert ocipack(*verify, "--allow-unsigned")[0] == 0
    items = json.loads(Path("r.json").read_text())["items"]
    assert [(one["verdict"], one["signers"]) for one in items] == [("exempted", [])] * 2


def test_what_changed_between_two_archives(
    site: Path, signed: Far, ocipack: Run, public: str, key: str
) -> None:
    moved = image(signed.memory, b"another")
    signed.put("team/web", moved)
    signed.put("team/new", moved)
    places = [f"oci://{signed.name}/team/{name}:v1" for name in ("web", "new")]
    for place in places:
        assert ocipack("sign", place, "--key", key)[0] == 0
    assert ocipack("airgap", "save", *places, "-o", "next.tar", "--key", public)[0] == 0
    code, out, err = ocipack("airgap", "diff", str(site), "next.tar", "--output", "json=r.json")
    assert code == 0
    assert out.splitlines() == [
        f"removed   {signed.name}/team/app:v1  {signed.root.digest}",
        f"added     {signed.name}/team/new:v1  {moved.digest}",
        f"moved     {signed.name}/team/web:v1  {signed.web.digest} → {moved.digest}",
    ]
    assert "only before" in err
    said = json.loads(Path("r.json").read_text())
    assert [one["change"] for one in said["changes"]] == ["removed", "added", "moved"]
    assert said["bytes"]["removed"] > 200_000 > said["bytes"]["added"] > 0


def test_no_archive_there(ocipack: Run, public: str) -> None:
    for command in (
        ("verify", "gone.tar", "--key", public),
        ("list", "gone.tar"),
        ("diff", "gone.tar", "gone.tar"),
        ("files", "gone.tar", "-o", "x"),
        ("load", "gone.tar", "--to", "oci://127.0.0.1:1/x", "--key", public),
    ):
        code, out, err = ocipack("airgap", *command)
        assert (code, out) == (3, "")
        assert "gone.tar: there is no archive" in err
