"""Git repositories made by hand, served over HTTP on loopback as real servers do."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import urlsplit

from serving import Serving

WHO = {
    "GIT_AUTHOR_NAME": "test",
    "GIT_AUTHOR_EMAIL": "test@example.com",
    "GIT_COMMITTER_NAME": "test",
    "GIT_COMMITTER_EMAIL": "test@example.com",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(folder: Path, *arguments: str) -> str:
    """Run git in `folder`."""
    done = subprocess.run(
        ["git", "-c", "init.defaultBranch=main", *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **WHO},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


class Gits(Serving):
    """Serves the repositories below `root`; with `users` only to them. `seen` are the requests.

    With `moved` everything is there instead.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.users: dict[str, str] = {}
        self.moved = ""
        self.seen: list[tuple[str, str]] = []
        self.serve(_Handler)

    def address(self, name: str) -> str:
        return f"http://{self.host}/{name}"

    def commit(
        self, name: str, files: Mapping[str, str], *, tag: str = "", links: Mapping[str, str] = {}
    ) -> str:
        """Commit exactly `files` and `links` to the repository `name`, which is made if need be."""
        folder = self.root / name
        if not folder.exists():
            folder.mkdir(parents=True)
            git(folder, "init", "--quiet")
        git(folder, "rm", "-r", "-q", "--ignore-unmatch", ".")
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
            (folder / path).chmod(0o755 if path.endswith(".sh") else 0o644)
        for path, target in links.items():
            (folder / path).symlink_to(target)
        git(folder, "add", "-A")
        git(folder, "commit", "--quiet", "--allow-empty", "-m", "x")
        if tag:
            git(folder, "tag", "-f", "-a", tag, "-m", tag)
        return git(folder, "rev-parse", "HEAD")


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._backend()

    def do_POST(self) -> None:
        self._backend()

    def _backend(self) -> None:
        gits: Gits = self.server.owner  # type: ignore[attr-defined] # see Serving
        said = self.headers.get("Authorization", "")
        gits.seen.append((self.path, said))
        known = {
            "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()
            for name, password in gits.users.items()
        }
        if gits.moved:
            self.send_response(302)
            self.send_header("Location", gits.moved + self.path)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if gits.users and said not in known:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length", "0"))
        done = subprocess.run(
            ["git", "http-backend"],
            input=self.rfile.read(length),
            env={
                **WHO,
                "PATH": os.environ["PATH"],
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_PROJECT_ROOT": str(gits.root),
                "PATH_INFO": parts.path,
                "QUERY_STRING": parts.query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(length),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            },
            capture_output=True,
            check=False,
        )
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
