"""How fast a registry is asked, and the counts of what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from content import artifact
from registry import Fault, Registry, Switches

from ocipack.errors import Unavailable
from ocipack.oci.reference import Reference
from ocipack.stores.http.attempt import Attempt
from ocipack.stores.http.host import Host
from ocipack.stores.http.pace import Pace
from ocipack.stores.http.patience import Patience
from ocipack.stores.http.settings import Settings
from ocipack.stores.http.tally import HOSTS, Tally, exposed, operation
from ocipack.stores.http.transport import Transport
from ocipack.stores.http.url import Url
from ocipack.stores.registry.registries import Registries

SECRET = "s3cr3t"
DIGEST = "sha256:" + "a" * 64


@pytest.fixture
def server() -> Iterator[Registry]:
    with Registry() as running:
        running.static["/x"] = b"content"
        yield running


class Clock:
    """A time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))
        self.now += seconds

    def monotonic(self) -> float:
        return self.now


def pace(concurrency: int, rate: int, clock: Clock | None = None) -> Pace:
    clock = clock or Clock()
    return Pace(concurrency, rate, sleep=clock.sleep, monotonic=clock.monotonic)


# pace


def test_requests_begin_no_faster_than_they_may() -> None:
    clock = Clock()
    limits = pace(0, 20, clock)
    for _ in range(4):
        with limits.turn():
            pass
    assert clock.slept == [0.05, 0.05, 0.05]
    clock.now += 10
    with limits.turn():
        pass
    assert len(clock.slept) == 3, "whoever asks seldom need not wait, nor saves up for later"


def test_no_more_requests_at_once_than_there_may_be() -> None:
    limits, inside, most = pace(3, 0), threading.BoundedSemaphore(3), []
    gate = threading.Barrier(3, timeout=20)

    def ask() -> None:
        with limits.turn():
            assert inside.acquire(blocking=False)
            most.append(1)
            gate.wait()
            inside.release()

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(most) == 12


def test_an_upload_that_reads_from_the_same_registry_waits_for_nobody() -> None:
    limits = pace(1, 0)
    with limits.turn(), limits.turn():
        pass
    with limits.turn():
        pass


def test_without_limits_nobody_waits() -> None:
    clock = Clock()
    limits = pace(0, 0, clock)
    with limits.turn(), limits.turn():
        pass
    assert not clock.slept


def ask(limits: Pace, status: int, after: float | None = None, *, others: int = 0) -> int:
    """Ask while `others` are under way; how many could be so at once before."""
    clock = limits._monotonic  # the clock of the test
    allowed = limits._allowed
    limits._busy += others
    try:
        with limits.turn():
            began = clock()
    finally:
        limits._busy -= others
    limits._busy += others
    limits.heard(status, began, after)
    limits._busy -= others
    return int(min(allowed, 999))


def test_a_registry_that_complains_is_asked_by_half_as_many() -> None:
    clock = Clock()
    limits = pace(0, 0, clock)
    assert ask(limits, 200, others=7) == 999
    ask(limits, 429, others=7)
    clock.now += 1
    assert ask(limits, 429, others=3) == 4
    clock.now += 1
    assert ask(limits, 429) == 2
    clock.now += 1
    assert ask(limits, 429) == 1, "and never by nobody"
    clock.now += 1
    assert [ask(limits, 200) for _ in range(8)] == [1, 2, 2, 2, 3, 3, 3, 4]


def test_complaints_about_requests_that_were_under_way_together_count_once() -> None:
    clock = Clock()
    limits = pace(16, 0, clock)
    began = clock.now
    clock.now += 1
    limits._busy = 15
    for _ in range(8):
        limits.heard(429, began, None)
    assert limits._allowed == 8
    limits.heard(429, clock.now, None)
    assert limits._allowed == 4


def test_no_more_are_allowed_than_the_file_says() -> None:
    limits = pace(3, 0)
    ask(limits, 503, 0.0, others=2)
    for _ in range(50):
        ask(limits, 200)
    assert limits._allowed == 3


def test_what_is_no_complaint_slows_nobody_down() -> None:
    limits = pace(8, 0)
    for status in (200, 404, 500, 503):
        ask(limits, status, others=5)
    assert limits._allowed == 8


def test_when_one_is_told_to_wait_all_wait(server: Registry) -> None:
    """Whoever asks on while a registry counts is locked out for longer."""
    clock = Clock()
    patience = Patience(4, 60, sleep=clock.sleep, monotonic=clock.monotonic)
    transport = Transport(patience=patience)
    server.switches.faults = [Fault("/x", 429, {"Retry-After": "7"}, times=1)]
    url = Url.parse(f"{server.url}/x")

    def get() -> int:
        answer = transport.exchange("GET", url, headers={})
        answer.finish()
        return answer.status

    def other() -> list[int]:
        found: list[int] = []
        thread = threading.Thread(target=lambda: found.append(get()))
        thread.start()
        thread.join(20)
        return found

    assert get() == 429
    assert (other(), clock.slept) == ([200], [7.0])
    server.switches.faults = [Fault("/x", 429, {"Retry-After": "3600"}, times=1)]
    assert get() == 429
    assert other() == [200]
    assert clock.slept == [7.0], "nobody waits for an hour: that ends the run, and says so"


def test_the_limits_of_the_file_are_kept(server: Registry) -> None:
    clock = Clock()
    patience = Patience(1, 60, sleep=clock.sleep, monotonic=clock.monotonic)
    settings = Settings(hosts={server.name: Host(server.name, concurrency=1, rate=10)})
    transport = Transport(settings, patience=patience)
    for _ in range(3):
        transport.exchange("GET", Url.parse(f"{server.url}/x"), headers={}).read(10)
    with Registry() as other:
        other.static["/x"] = b""
        transport.exchange("GET", Url.parse(f"{other.url}/x"), headers={}).finish()
    assert clock.slept == [0.1, 0.1]


def test_a_turn_ends_when_the_request_fails(server: Registry) -> None:
    settings = Settings(hosts={server.name: Host(server.name, concurrency=1)})
    server.switches.faults = [Fault("/x", act="reset", times=1)]
    transport = Transport(settings)
    with pytest.raises(Unavailable):
        transport.exchange("GET", Url.parse(f"{server.url}/x"), headers={})
    done = threading.Thread(
        target=lambda: transport.exchange("GET", Url.parse(f"{server.url}/x"), headers={}).finish()
    )
    done.start()
    done.join(20)
    assert not done.is_alive()


# tally


@pytest.mark.parametrize(
    ("method", "target", "name"),
    [
        ("GET", "/v2/", "ping"),
        ("HEAD", "/v2/a/b/manifests/v1", "manifests_head"),
        ("PUT", f"/v2/a/manifests/{DIGEST}", "manifests_put"),
        ("GET", f"/v2/a/blobs/{DIGEST}", "blobs_get"),
        ("POST", "/v2/a/blobs/uploads/", "upload"),
        ("PUT", f"/v2/a/blobs/uploads/1?digest={DIGEST}", "upload"),
        ("PATCH", "/v2/a/blobs/uploads/1", "upload"),
        ("POST", f"/v2/a/blobs/uploads/?mount={DIGEST}&from=b", "mount"),
        ("GET", "/v2/a/tags/list?n=1", "tags_get"),
        ("GET", f"/v2/a/referrers/{DIGEST}", "referrers_get"),
        ("DELETE", "/v2/a/manifests/v1", "manifests_delete"),
        ("GET", "/token?service=x&scope=repository:a:pull", "token"),
        ("POST", "/oauth2/token", "token"),
        ("GET", "/bucket/x?X-Amz-Signature=a", "other"),
        ("GET", "/v2/_catalog", "other"),
    ],
)
def test_what_a_request_is_for(method: str, target: str, name: str) -> None:
    assert operation(method, Url.parse(f"https://r.example{target}")) == name


def sums(tally: Tally) -> dict[str, str]:
    lines = [line for line in tally.lines() if not line.startswith("#") and "seconds" not in line]
    return dict(line.rsplit(" ", 1) for line in lines)


def test_a_push_is_counted(server: Registry) -> None:
    tally, layer = Tally(), b"x" * 1000
    transport = Transport(tally=tally)
    store = Registries(transport).store(Reference.parse(f"{server.name}/team/app"), writes=True)
    made = artifact(layer)
    for child in made.manifest.children:
        store.push(child, made)
    store.push(made.root, made)
    fresh = Registries(transport).store(Reference.parse(f"{server.name}/team/app"))
    assert b"".join(fresh.fetch(made.manifest.layers[0])) == layer
    where = f'host="{server.name}",operation='
    found = sums(tally)
    assert found[f'ocipack_http_requests_total{{{where}"upload",status="201"}}'] == "2"
    assert found[f'ocipack_http_sent_bytes_total{{{where}"upload"}}'] == "1002"
    assert found[f'ocipack_http_sent_bytes_total{{{where}"manifests_put"}}'] == str(made.root.size)
    assert found[f'ocipack_http_received_bytes_total{{{where}"blobs_get"}}'] == "1000"
    assert not [name for name in found if "retries" in name or "throttled" in name]


def test_retries_and_throttling_are_counted() -> None:
    tally = Tally()
    wait = [Fault("manifests", 429, {"Retry-After": "1"}, times=2)]
    with Registry(Switches(faults=wait)) as server:
        patience = Patience(4, 60, sleep=lambda _: None, retried=tally.retried)
        transport = Transport(patience=patience, tally=tally)
        store = Registries(transport).store(Reference.parse(f"{server.name}/a"))
        with pytest.raises(Exception, match="has no"):
            store.resolve("v1")
        where = f'host="{server.name}",operation="manifests_get"'
    found = sums(tally)
    assert found[f"ocipack_http_retries_total{{{where}}}"] == "2"
    assert found[f"ocipack_http_throttled_total{{{where}}}"] == "2"
    assert found[f'ocipack_http_requests_total{{{where},status="429"}}'] == "2"
    assert found[f'ocipack_http_requests_total{{{where},status="404"}}'] == "1"


def test_a_transport_with_a_tally_counts_retries_by_itself() -> None:
    tally = Tally()
    assert Transport(tally=tally).patience.retried == tally.retried


def test_what_came_to_nothing_is_counted(server: Registry) -> None:
    tally = Tally()
    server.switches.faults = [Fault("/x", act="reset")]
    with pytest.raises(Unavailable):
        Transport(tally=tally).exchange("GET", Url.parse(f"{server.url}/x"), headers={})
    assert [name for name in sums(tally) if 'status="failed"' in name]


def test_hosts_are_bounded_and_nothing_secret_is_shown() -> None:
    tally = Tally()
    for number in range(HOSTS + 50):
        url = Url.parse(f"https://h{number}.example/x?sig={SECRET}")
        tally.ended(Attempt("GET", url, "", 1, 2), "200", 0.25)
    text = "\n".join(tally.lines())
    assert SECRET not in text
    assert len(text.splitlines()) < 2 * HOSTS + 20
    assert 'host="other",operation="other",status="200"} 50' in text


def test_the_text_format() -> None:
    samples = [((("a", 'q"\\\n'),), 1.0), ((), 0.123456789)]
    assert list(exposed("x", "gauge", "An x.", samples)) == [
        "# HELP x An x.",
        "# TYPE x gauge",
        'x{a="q\\"\\\\\\n"} 1',
        "x 0.123457",
    ]
