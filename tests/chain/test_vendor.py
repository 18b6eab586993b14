"""`ocipack vendor` from real servers on loopback: files, archives, git, charts."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from charts import Shelf, chart, sha256
from gits import Gits, git
from registry import Registry
from shelf import image
from tars import entry, layer

from ocipack.vendor import run as run_module

Run = Callable[..., tuple[int, str, str]]
HEAD = "apiVersion: ocipack.dev/v1alpha1\nkind: Vendor\nvendor:\n"
CRD = b"kind: CustomResourceDefinition\n"


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    with Shelf() as made:
        made.files["/crds.yaml"] = CRD
        yield made


@pytest.fixture
def gits(tmp_path: Path) -> Iterator[Gits]:
    with Gits(tmp_path / "gits") as made:
        yield made


def write(*entries: str) -> None:
    Path("vendor.yaml").write_text(HEAD + "".join(f"- {{{one}}}\n" for one in entries))


def tree(top: str = ".") -> dict[str, str]:
    """The files below a directory, but for repositories and what vendor keeps beside them."""
    found = {}
    for path in sorted(Path(top).rglob("*")):
        name = path.relative_to(top).as_posix()
        if path.is_file() and not name.startswith(("gits/", "vendor.", ".git/")):
            found[name] = path.read_text()
    return found


def test_a_file_is_fetched_once_kept_and_brought_back(ocipack: Run, shelf: Shelf) -> None:
    write(f"into: base/crds, url: 'http://{shelf.host}/crds.yaml'")

    code, out, err = ocipack("vendor")

    assert code == 0, err
    assert out == f"added     base/crds  sha256 {sha256(CRD)}\n"
    assert tree() == {"base/crds/crds.yaml": CRD.decode()}
    lock = Path("vendor.lock").read_text()
    assert lock == (
        "apiVersion: ocipack.dev/v1alpha1\nkind: VendorLock\nvendored:\n- into: base/crds\n"
        f"  url: http://{shelf.host}/crds.yaml\n  sha256: {sha256(CRD)}\n  files:\n"
        f"  - sha256: {sha256(CRD)}\n    name: crds.yaml\n"
    )
    shelf.requests.clear()
    assert ocipack("vendor")[1].startswith("unchanged base/crds")
    assert ocipack("vendor", "--check")[0] == 0
    assert not shelf.requests
    Path("base/crds/crds.yaml").unlink()
    assert ocipack("vendor", "--check")[0] == 1
    assert ocipack("vendor")[0] == 0
    assert tree() == {"base/crds/crds.yaml": CRD.decode()}
    assert Path("vendor.lock").read_text() == lock


def test_what_is_not_what_the_lock_or_the_file_says_is_refused(ocipack: Run, shelf: Shelf) -> None:
    url = f"url: 'http://{shelf.host}/crds.yaml'"
    write(f"into: a, {url}, sha256: '{'0' * 64}'")
    code, _, err = ocipack("vendor")
    assert code == 1
    assert f"is {sha256(CRD)} now, and it should be {'0' * 64}" in err
    assert tree() == {}
    assert not Path("vendor.lock").exists()

    write(f"into: a, {url}, sha256: {sha256(CRD)}")
    assert ocipack("vendor")[0] == 0
    shelf.files["/crds.yaml"] = b"other\n"
    Path("a/crds.yaml").unlink()
    code, _, err = ocipack("vendor")
    assert code == 1
    assert tree() == {}

    write(f"into: a, {url}")
    code, _, err = ocipack("vendor")
    assert (code, "the lock says" in err, "--update a" in err) == (1, True, True)
    assert ocipack("vendor", "--update")[0] == 0
    assert tree() == {"a/crds.yaml": "other\n"}


def test_git_is_taken_at_the_commit_of_the_lock_until_it_is_updated(
    ocipack: Run, gits: Gits
) -> None:
    files = {"kustomize/a.yaml": "a\n", "kustomize/run.sh": "#!/bin/sh\n", "README.md": "no\n"}
    first = gits.commit("x/app", files, tag="v1")
    write(f"into: base, git: '{gits.address('x/app')}', ref: main, path: kustomize")

    code, out, err = ocipack("vendor")

    assert code == 0, err
    assert out == f"added     base  commit {first}\n"
    assert tree() == {"base/a.yaml": "a\n", "base/run.sh": "#!/bin/sh\n"}
    assert os.access("base/run.sh", os.X_OK)
    second = gits.commit("x/app", {"kustomize/b.yaml": "b\n"})
    for path in Path("base").iterdir():
        path.unlink()
    assert ocipack("vendor")[0] == 0
    assert sorted(tree()) == ["base/a.yaml", "base/run.sh"]
    assert ocipack("vendor", "--update", "base/")[1] == f"updated   base  commit {second}\n"
    assert tree() == {"base/b.yaml": "b\n"}  # what upstream dropped is gone
    assert ocipack("vendor", "--check")[0] == 0


@pytest.mark.parametrize("ref", ["v1", "refs/tags/v1", "refs/heads/main", "HEAD", "main"])
def test_refs_are_tags_branches_or_full_names(ocipack: Run, gits: Gits, ref: str) -> None:
    commit = gits.commit("app", {"a": "a\n"}, tag="v1")
    write(f"into: base, git: '{gits.address('app')}', ref: {ref}")

    assert ocipack("vendor")[1] == f"added     base  commit {commit}\n"


def test_a_tag_and_a_branch_that_differ_are_told_apart_by_nobody(ocipack: Run, gits: Gits) -> None:
    gits.commit("app", {"a": "a\n"}, tag="v1")
    gits.commit("app", {"a": "b\n"})
    git(gits.root / "app", "branch", "v1")
    write(f"into: base, git: '{gits.address('app')}', ref: v1")

    code, _, err = ocipack("vendor")

    assert code == 1
    assert "is a tag and a branch" in err


def test_a_commit_alone_is_enough_and_a_wrong_one_is_not_found(ocipack: Run, gits: Gits) -> None:
    commit = gits.commit("app", {"a": "a\n"})
    gits.commit("app", {"a": "b\n"}, tag="v1")
    address = gits.address("app")
    write(f"into: base, git: '{address}', commit: {commit}")
    assert ocipack("vendor")[0] == 0
    assert tree() == {"base/a": "a\n"}

    write(f"into: base, git: '{address}', commit: '{'0' * 39}1'")
    assert ocipack("vendor")[0] == 3
    identity = git(gits.root / "app", "rev-parse", "v1")  # a tag's own id is no commit
    write(f"into: base, git: '{address}', commit: {identity}")
    code, _, err = ocipack("vendor")
    assert (code, "could not be had as a commit" in err) == (1, True)
    assert tree() == {"base/a": "a\n"}


def test_links_submodules_filters_and_hooks_have_no_effect(
    ocipack: Run, gits: Gits, tmp_path: Path
) -> None:
    """Attributes are not applied; a link among what is wanted is refused by name."""
    pwned = tmp_path / "pwned"
    attributes = "* filter=evil export-ignore ident\n"
    gits.commit(
        "app",
        {
            "k/a.yaml": "$Id$\n",
            ".gitattributes": attributes,
            "hooks/post-checkout": f"touch {pwned}",
        },
        links={"k-link": "/etc/passwd"},
    )
    address = gits.address("app")
    write(f"into: base, git: '{address}', ref: main, path: k")
    assert ocipack("vendor")[0] == 0
    assert tree() == {"base/a.yaml": "$Id$\n"}

    write(f"into: base, git: '{address}', ref: main")
    code, _, err = ocipack("vendor")

    assert code == 1
    assert "'k-link' is a symbolic link" in err
    folder = gits.root / "app"
    git(folder, "rm", "-q", "k-link")
    git(folder, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    git(folder, "commit", "-q", "-m", "x")
    code, _, err = ocipack("vendor", "--update")
    assert (code, "'sub' is a submodule" in err) == (1, True)
    assert not pwned.exists()


def test_git_gets_credentials_for_its_host_and_nothing_of_ours(
    ocipack: Run, gits: Gits, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gits.commit("app", {"a": "a\n"})
    gits.users["user"] = "pass"
    write(f"into: base, git: '{gits.address('app')}', ref: main")
    home = tmp_path / "home"
    home.mkdir()
    evil = f'[alias]\n[core]\nsshCommand = touch {tmp_path}/pwned\n[url "http://127.0.0.1:1/"]\n'
    (home / ".gitconfig").write_text(evil + f"insteadOf = http://{gits.host}/\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))

    code, _, err = ocipack("vendor")
    assert code == 3
    assert "login" in err
    config = home / ".docker/config.json"
    config.parent.mkdir()
    config.write_text(json.dumps({"auths": {gits.host: {"auth": "dXNlcjpwYXNz"}}}))
    code, _, err = ocipack("vendor")

    assert code == 0, err
    assert tree("base") == {"a": "a\n"}


@pytest.mark.parametrize(
    "address",
    [
        "ssh://git@127.0.0.1/x",
        "git@github.com:a/b",
        "file:///tmp/x",
        "ext::sh -c touch% /tmp/pwned",
        "/tmp/x",
        "https://user:secret@example.com/x",
        "--upload-pack=touch /tmp/pwned",
        "http://example.com/x.git",
    ],
)
def test_only_https_is_spoken_to_git(ocipack: Run, address: str) -> None:
    write(f"into: base, git: '{address}', ref: main")

    code, out, err = ocipack("vendor")

    assert (code, out) == (2, "")
    assert "secret" not in err


def test_charts_of_both_kinds_are_unpacked(ocipack: Run, shelf: Shelf) -> None:
    text = "apiVersion: v2\nname: shop\nversion: 1.2.0\n"
    archive = chart(text, {"crds/crd.yaml": "crd\n", "templates/a.yaml": "a\n"})
    shelf.publish({"1.2.0": archive})
    with Registry() as registry:
        place = f"{registry.name}/charts/shop:1.2.0"
        assert (
            ocipack(
                "copy", f"helm+{shelf.address}/shop:1.2.0", f"oci://{place}", "--allow-unsigned"
            )[0]
            == 0
        )
        write(
            f"into: charts/shop, chart: 'shop:1.2.0', repository: '{shelf.address}'",
            f"into: crds, chart: 'oci://{place}', path: crds",
        )

        code, out, err = ocipack("vendor")
        assert code == 0, err
        image(registry, "charts/shop", "1.2.0", b"no chart")
        Path("crds/crd.yaml").unlink()
        assert ocipack("vendor")[0] == 0  # by the digest of the lock
        code, _, err = ocipack("vendor", "--update")

    first, second = out.splitlines()
    assert first.split()[2:] == second.split()[2:]  # one artifact
    assert tree() == {
        "charts/shop/Chart.yaml": text,
        "charts/shop/crds/crd.yaml": "crd\n",
        "charts/shop/templates/a.yaml": "a\n",
        "crds/crd.yaml": "crd\n",
    }
    assert (code, "not a chart" in err) == (1, True)


def test_archives_are_unpacked_by_path_and_glob(ocipack: Run, shelf: Shelf) -> None:
    made = layer(
        *(
            entry(f"app-1/{name}", name.encode())
            for name in ("crd/a.yaml", "crd/b.yaml", "crd/c/d.md")
        ),
        entry("app-1/other", b"x"),
    )
    shelf.files["/app.tar.gz"] = made
    url = f"url: 'http://{shelf.host}/app.tar.gz'"
    write(f"into: base, {url}, path: app-1/crd, include: ['*.yaml'], exclude: [b*]")
    assert ocipack("vendor")[0] == 0
    assert tree() == {"base/a.yaml": "crd/a.yaml"}

    write(f"into: base, {url}, path: app-2")
    code, _, err = ocipack("vendor")
    assert (code, "nothing of" in err) == (1, True)
    for evil in (entry("../x", b""), entry("a", kind=b"2", linkname=b"/etc/passwd")):
        shelf.files["/app.tar.gz"] = layer(evil)
        assert ocipack("vendor")[0] == 1
    assert tree() == {"base/a.yaml": "crd/a.yaml"}


def test_work_of_others_is_not_lost(ocipack: Run, shelf: Shelf) -> None:
    url = f"url: 'http://{shelf.host}/crds.yaml'"
    write(f"into: base, {url}")
    Path("base").mkdir()
    Path("base/mine.yaml").write_text("mine\n")
    code, _, err = ocipack("vendor")
    assert (code, "base: mine.yaml: changed here, or not brought" in err) == (1, True)
    assert tree() == {"base/mine.yaml": "mine\n"}
    assert ocipack("vendor", "--force")[0] == 0
    assert tree() == {"base/crds.yaml": CRD.decode()}

    Path("base/crds.yaml").write_text("edited\n")
    assert ocipack("vendor")[0] == 1
    code, out, err = ocipack("vendor", "--check", "--output", "json")
    assert code == 1
    (one,) = json.loads(out)["findings"]
    assert one["rule"] == "vendor-changed"
    assert one["message"].endswith(f"and the lock says {sha256(CRD)}")
    assert ocipack("vendor", "--force")[0] == 0
    assert tree() == {"base/crds.yaml": CRD.decode()}


def test_an_entry_that_is_gone_takes_its_files_along_and_no_others(
    ocipack: Run, shelf: Shelf
) -> None:
    url = f"url: 'http://{shelf.host}/crds.yaml'"
    write(f"into: one/deep, {url}", f"into: two, {url}")
    assert ocipack("vendor")[0] == 0
    Path("one/mine.yaml").write_text("mine\n")
    write(f"into: two, {url}")
    assert ocipack("vendor", "--check")[0] == 1

    code, out, _ = ocipack("vendor")

    assert code == 0
    assert out.splitlines()[1] == "removed   one/deep"
    assert tree() == {"one/mine.yaml": "mine\n", "two/crds.yaml": CRD.decode()}
    assert ocipack("vendor", "--check")[0] == 0
    write(f"into: three, {url}")
    Path("two/mine.yaml").write_text("mine\n")
    assert ocipack("vendor")[0] == 1
    assert sorted(tree()) == ["one/mine.yaml", "two/crds.yaml", "two/mine.yaml"]
    assert ocipack("vendor", "--force")[0] == 0
    assert sorted(tree()) == ["one/mine.yaml", "three/crds.yaml", "two/mine.yaml"]


def test_nothing_is_written_through_a_link(ocipack: Run, shelf: Shelf, tmp_path: Path) -> None:
    outside = tmp_path / "gits"
    outside.mkdir()
    Path("link").symlink_to(outside)
    for into in ("link", "link/base"):
        write(f"into: {into}, url: 'http://{shelf.host}/crds.yaml'")
        for more in ([], ["--force"]):
            code, _, err = ocipack("vendor", *more)
            assert (code, "a link" in err) == (1, True)
    assert not list(outside.iterdir())


def test_all_is_fetched_before_anything_is_written(ocipack: Run, shelf: Shelf) -> None:
    write(
        f"into: one, url: 'http://{shelf.host}/crds.yaml'",
        f"into: two, url: 'http://{shelf.host}/missing.yaml'",
    )

    assert ocipack("vendor")[0] == 3

    assert tree() == {}
    assert not Path("vendor.lock").exists()


def test_what_is_written_at_once_has_a_bound(
    ocipack: Run, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"url: 'http://{shelf.host}/crds.yaml'"
    write(f"into: one, {url}", f"into: two, {url}")
    monkeypatch.setattr(run_module, "TOTAL", 2 * len(CRD) - 1)
    code, _, err = ocipack("vendor")
    assert (code, "are to be vendored at once" in err) == (1, True)
    assert tree() == {}
    assert ocipack("vendor", "one")[0] == 0
    assert ocipack("vendor", "two")[0] == 0


def test_a_link_among_vendored_files_is_named(ocipack: Run, shelf: Shelf) -> None:
    write(f"into: base, url: 'http://{shelf.host}/crds.yaml'")
    assert ocipack("vendor")[0] == 0
    Path("base/link").symlink_to("/etc/passwd")

    for arguments in (["--check"], [], ["--force"]):
        code, _, err = ocipack("vendor", *arguments)
        assert (code, "holds what is no plain file" in err, "link" in err) == (1, True, True)


def test_check_says_what_is_wrong_where(ocipack: Run, shelf: Shelf) -> None:
    url = f"url: 'http://{shelf.host}/crds.yaml'"
    write(f"into: one, {url}", f"into: two, {url}")
    assert ocipack("vendor")[0] == 0
    write(f"into: one, {url}, name: other.yaml", f"into: two, {url}", f"into: three, {url}")
    Path("two/crds.yaml").chmod(0o755)
    Path("two/extra.yaml").write_text("x\n")
    shelf.requests.clear()

    code, out, _ = ocipack("vendor", "--check", "--output", "json")

    assert code == 1
    found = {(one["rule"], one["file"], one.get("line", 0)) for one in json.loads(out)["findings"]}
    assert found == {
        ("vendor-stale", "vendor.yaml", 4),
        ("vendor-stale", "vendor.yaml", 6),
        ("vendor-changed", "two/crds.yaml", 0),
        ("vendor-extra", "two/extra.yaml", 0),
    }
    assert not shelf.requests
    assert ocipack("vendor", "--check", "--update")[0] == 2
    assert ocipack("vendor", "four")[0] == 2


def test_the_vendor_file_can_be_elsewhere(ocipack: Run, shelf: Shelf) -> None:
    Path("deep").mkdir()
    write(f"into: base, url: 'http://{shelf.host}/crds.yaml'")
    Path("vendor.yaml").rename("deep/third.yaml")

    assert ocipack("vendor", "-f", "deep/third.yaml")[0] == 0

    assert tree() == {
        "deep/base/crds.yaml": CRD.decode(),
        "deep/third.lock": Path("deep/third.lock").read_text(),
        "deep/third.yaml": Path("deep/third.yaml").read_text(),
    }


def test_a_remote_base_is_refused_with_what_to_do_and_then_renders(
    ocipack: Run, gits: Gits
) -> None:
    commit = gits.commit(
        "app",
        {
            "base/kustomization.yaml": "resources: [cm.yaml]\n",
            "base/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
        },
    )
    Path("site").mkdir()
    remote = f"{gits.address('app')}//base?ref={commit}"
    Path("site/kustomization.yaml").write_text(f"resources: ['{remote}']\n")
    code, _, err = ocipack("render", "site", "--allow-dirty")
    assert code == 1
    assert "`ocipack vendor`" in err

    Path("site/kustomization.yaml").write_text("resources: [base]\n")
    text = f"{HEAD}- {{into: base, git: '{gits.address('app')}', ref: main, path: base}}\n"
    Path("site/vendor.yaml").write_text(text)
    assert ocipack("vendor", "-f", "site/vendor.yaml")[0] == 0

    code, out, err = ocipack("render", "site", "--allow-dirty")
    assert code == 0, err
    assert "kind: ConfigMap" in out


def test_a_project_says_which_hosts_may_be_asked(ocipack: Run, shelf: Shelf, gits: Gits) -> None:
    gits.commit("app", {"a": "a\n"})
    Path("ocipack.yaml").write_text(
        "apiVersion: ocipack.dev/v1alpha1\nregistries: [registry.example.com]\n"
    )
    for entry_ in (
        f"into: base, url: 'http://{shelf.host}/crds.yaml'",
        f"into: base, git: '{gits.address('app')}', ref: main",
    ):
        write(entry_)
        code, _, err = ocipack("vendor")
        assert (code, "may contact" in err) == (1, True), err
    assert not shelf.requests
    assert not gits.seen


def test_git_itself_agrees_about_the_content(ocipack: Run, gits: Gits, tmp_path: Path) -> None:
    names = {f"d{n}/ü {n}.yaml": f"{n}\r\n" for n in range(20)}
    gits.commit("app", names)
    write(f"into: base, git: '{gits.address('app')}', ref: main")
    assert ocipack("vendor")[0] == 0

    clone = tmp_path / "gits" / "clone"
    subprocess.run(["git", "clone", "-q", gits.root / "app", clone], check=True)

    assert tree("base") == tree(str(clone))
