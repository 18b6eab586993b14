"""What an artifact says about where it comes from."""

from __future__ import annotations

import pytest

from ocipack.errors import Misuse
from ocipack.flux.origin import (
    Checkout,
    created,
    public_url,
    ref_name,
    revision,
    source,
    without_credentials,
)

SHA1 = "0123456789abcdef0123456789abcdef01234567"
SHA256 = SHA1 + "0123456789abcdef01234567"


def checkout(**said: str) -> Checkout:
    return Checkout(SHA1, 1700000000, **said)  # type: ignore[arg-type] # only texts are given


@pytest.mark.parametrize("commit", ["", "HEAD", SHA1[:12], SHA1.upper(), SHA1 + "0", SHA1 + "\n"])
def test_a_commit_is_its_full_id(commit: str) -> None:
    with pytest.raises(Misuse, match="not a commit"):
        Checkout(commit, 0)


def test_a_remote_does_not_leak_through_repr() -> None:
    assert "token" not in repr(checkout(remote="https://x:token@h/r"))


def test_revision() -> None:
    assert revision("main", checkout()) == f"main@sha1:{SHA1}"
    assert revision("v1.2.3", checkout(), dirty=True) == f"v1.2.3-dirty@sha1:{SHA1}"
    assert revision("feature/x", Checkout(SHA256, 0)) == f"feature/x@sha256:{SHA256}"


@pytest.mark.parametrize("name", ["", "a b", "a\nb", "a\x1b", "a:b", "a~1", "a^", "a*"])
def test_names_that_no_branch_has(name: str) -> None:
    with pytest.raises(Misuse, match="not a name of a branch or tag"):
        revision(name, checkout())


def test_the_name_is_flag_ci_tag_branch_head() -> None:
    full = checkout(tag="v1", branch="main")
    assert ref_name(flag="flag", ci="ci", checkout=full) == "flag"
    assert ref_name(ci="ci", checkout=full) == "ci"
    assert ref_name(checkout=full) == "v1"
    assert ref_name(checkout=checkout(branch="main")) == "main"
    assert ref_name(checkout=checkout()) == "HEAD"
    assert ref_name() == "HEAD"


def test_created_is_utc_and_source_date_epoch_goes_first() -> None:
    assert created(checkout=checkout()) == "2023-11-14T22:13:20Z"
    assert created(epoch="0", checkout=checkout()) == "1970-01-01T00:00:00Z"
    assert created(epoch="253402300799") == "9999-12-31T23:59:59Z"
    assert created() == ""


@pytest.mark.parametrize(
    "epoch", ["x", "-1", "1.5", " 1", "1e9", "253402300800", "9" * 50, "\u0661", "1_0"]
)
def test_an_epoch_that_is_no_time_is_misuse(epoch: str) -> None:
    with pytest.raises(Misuse, match="not a time") as e:
        created(epoch=epoch)
    assert "SOURCE_DATE_EPOCH" in e.value.hint


@pytest.mark.parametrize(
    ("remote", "url"),
    [
        ("https://github.com/org/repo", "https://github.com/org/repo"),
        ("https://github.com/org/repo.git", "https://github.com/org/repo"),
        ("https://github.com/org/repo.git/", "https://github.com/org/repo"),
        ("https://user:token@GitHub.com/org/repo.git", "https://github.com/org/repo"),
        ("https://x-access-token:ghp_1@github.com/o/r", "https://github.com/o/r"),
        ("https://h/o/r?private_token=s#f", "https://h/o/r"),
        ("https://git.local:8443/o/r.git", "https://git.local:8443/o/r"),
        ("http://git.local/o/r.git", "https://git.local/o/r"),
        ("http://u:p@git.local:3000/o/r.git", "http://git.local:3000/o/r"),
        ("git@github.com:org/repo.git", "https://github.com/org/repo"),
        ("github.com:org/repo", "https://github.com/org/repo"),
        ("ssh://git@git.local:2222/org/repo.git", "https://git.local/org/repo"),
        ("git+ssh://git@h/r", "https://h/r"),
        ("git://h/r.git", "https://h/r"),
        ("git@[::1]:o/r", "https://[::1]/o/r"),
        ("https://[2001:db8::1]:8443/r", "https://[2001:db8::1]:8443/r"),
        # local: nobody else can go there
        ("", ""),
        ("/srv/git/repo.git", ""),
        ("../repo", ""),
        ("file:///srv/git/repo.git", ""),
        ("C:\\repos\\x", ""),
        ("C:/repos/x", ""),
        # junk
        ("https://", ""),
        ("https://h:port/r", ""),
        ("https://[::1/r", ""),
        ("ext::sh -c touch% /tmp/x", ""),
        ("-oProxyCommand=x", ""),
    ],
)
def test_a_remote_as_people_open_it(remote: str, url: str) -> None:
    assert public_url(remote) == url
    assert public_url(url) == url


def test_source_is_the_first_that_is_given_else_the_remote() -> None:
    here = checkout(remote="git@h.example:o/r.git")
    assert source(given=["", "https://flag", "https://ci"], checkout=here) == "https://flag"
    assert source(given=["", ""], checkout=here) == "https://h.example/o/r"
    assert source(given=[]) == ""
    assert source(given=["https://me:secret@h/r.git"]) == "https://h/r.git"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://u:p@h/r.git", "https://h/r.git"),
        ("https://h/@scope/r", "https://h/@scope/r"),
        ("https://h?token=x", "https://h"),
        ("ssh://u:p@h:22/r", "ssh://h:22/r"),
        ("oci://u:p@h/r", "oci://h/r"),
        ("my monorepo", "my monorepo"),
        ("git@github.com:o/r", "git@github.com:o/r"),
        ("https://u:p/w@h/r", "https://h/r"),
        ("https://u:p#w@h/r", "https://h/r"),
        ("https://u:p?w@h/r", "https://h/r"),
        ("https://:p@h/r", "https://h/r"),
        ("u:p@h:o/r", "h:o/r"),
        ("//u:p@h/r", "h/r"),
        ("https://h:8080/@scope/r", "https://h:8080/@scope/r"),
        ("https://[::1]/@scope/r", "https://[::1]/@scope/r"),
        ("note: by me@example", "note: by me@example"),
    ],
)
def test_credentials_go_the_rest_stays(text: str, shown: str) -> None:
    assert without_credentials(text) == shown


def test_only_changes_that_are_packed_make_a_tree_dirty() -> None:
    here = Checkout(SHA1, 0, changed=("a.yaml", "logo.png"))
    assert here.dirt(lambda name: name.endswith(".png")) == ("a.yaml",)
    assert here.dirt(lambda _: True) == ()
