"""What a run asked of registries, counted by host and operation, for Prometheus.

The text is the exposition format 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats), as
the textfile collector of the node exporter reads it.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from ocipack.stores.http.attempt import Attempt
from ocipack.stores.http.url import Url

HOSTS: Final = 200
"""Hosts that are told apart; a registry can send us to any number of them."""

_OTHER = "other"
_TOO_MANY = 429
_API = re.compile(r"/v2/.+/(manifests|blobs/uploads|blobs|tags|referrers)/[^/]*")

_COUNTED: Final = {
    "requests_total": "Requests, by the status of their answer, or failed or stopped without one.",
    "request_seconds_total": "Seconds until answers began.",
    "sent_bytes_total": "Bytes of bodies handed to connections.",
    "received_bytes_total": "Bytes of bodies received.",
    "retries_total": "Requests made again since another try might help.",
    "throttled_total": "Answers 429: asked too often.",
}

Labels = tuple[tuple[str, str], ...]


def operation(method: str, url: Url) -> str:
    """Name what a request is for: a room of the API and a verb, `token`, `ping` or `other`."""
    if url.path == "/v2/":
        return "ping"
    match = _API.fullmatch(url.path)
    if match is None:
        asks = method == "POST" or "scope=" in url.query or "service=" in url.query
        return "token" if asks and not url.path.startswith("/v2/") else _OTHER
    room = match[1]
    if room == "blobs/uploads":
        return "mount" if "mount=" in url.query else "upload"
    return f"{room}_{method.lower()}"


class Tally:
    """Counts, safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, Counter[Labels]] = {name: Counter() for name in _COUNTED}
        self._hosts: set[str] = set()
        self._last = threading.local()

    def labels(self, at: Attempt) -> Labels:
        """What an exchange is counted under."""
        host = at.url.netloc
        with self._lock:
            if host not in self._hosts and len(self._hosts) >= HOSTS:
                host = _OTHER
            self._hosts.add(host)
        return (("host", host), ("operation", operation(at.method, at.url)))

    def ended(self, at: Attempt, how: str, seconds: float) -> None:
        """Count a request whose answer has begun (`how` is its status), or that came to nothing."""
        labels = self._last.labels = self.labels(at)
        self._add("requests_total", (*labels, ("status", how)), 1)
        self._add("request_seconds_total", labels, seconds)
        if how == str(_TOO_MANY):
            self._add("throttled_total", labels, 1)

    def sent(self, at: Attempt, count: int) -> None:
        """Count bytes of a body as they go."""
        self._add("sent_bytes_total", self.labels(at), count)

    def received(self, at: Attempt, count: int) -> None:
        """Count bytes of a body as they come."""
        self._add("received_bytes_total", self.labels(at), count)

    def retried(self) -> None:
        """Count that this thread makes its last request again."""
        self._add("retries_total", getattr(self._last, "labels", ()), 1)

    def _add(self, name: str, labels: Labels, count: float) -> None:
        with self._lock:
            self._counts[name][labels] += count  # type: ignore[assignment] # seconds are no int

    def lines(self) -> Iterator[str]:
        """The exposition of all counts, sorted; a name without a count is left out."""
        for name, meaning in _COUNTED.items():
            with self._lock:
                found = sorted(self._counts[name].items())
            if found:
                yield from exposed(f"ocipack_http_{name}", "counter", meaning, found)


def exposed(
    name: str, kind: str, meaning: str, samples: Iterable[tuple[Labels, float]]
) -> Iterator[str]:
    """One metric with its samples, in the text format."""
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
        number = f"{value:.6f}".rstrip("0").rstrip(".")
        yield f"{name}{{{shown}}} {number}" if shown else f"{name} {number}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
