"""What tests of whole commands share: a directory of their own, keys, a tree."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ocipack.cli.app import run

ROOT = Path(__file__).parents[2]
PASSWORD = "correct-horse"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each test runs in a directory of its own, with a known environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COSIGN_PASSWORD", PASSWORD)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    for name in ("SOURCE_DATE_EPOCH", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "CI_PROJECT_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home of nobody's: no credentials, no settings."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("XDG_CONFIG_HOME", "DOCKER_CONFIG", "REGISTRY_AUTH_FILE", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("OCIPACK_REGISTRIES", raising=False)
    return folder


@pytest.fixture
def ocipack(capfd: pytest.CaptureFixture[str]) -> Run:
    """Run one command line in this process; gives its exit code and both streams."""

    def call(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = run(list(arguments))
        return (code, *capfd.readouterr())

    return call


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stem of a key pair that every test may use: `<stem>.key` and `<stem>.pub`."""
    stem = tmp_path_factory.mktemp("keys") / "cosign"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COSIGN_PASSWORD", PASSWORD)
        assert run(["keys", "generate", "-o", str(stem), "--quiet"]) == 0
    return stem


@pytest.fixture
def key(pair: Path) -> str:
    return f"{pair}.key"


@pytest.fixture
def public(pair: Path) -> str:
    return f"{pair}.pub"


@pytest.fixture
def hello(tmp_path: Path) -> Path:
    """A copy of examples/hello that a test may change."""
    return Path(shutil.copytree(ROOT / "examples/hello", tmp_path / "hello"))


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A copy of examples/shop that a test may change."""
    return Path(shutil.copytree(ROOT / "examples/shop", tmp_path / "shop"))
