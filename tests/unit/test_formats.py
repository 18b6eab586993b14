"""Formats: what an API server takes and what it refuses, from the documents of each format."""

from __future__ import annotations

import pytest

from ocipack.validate.formats import ALL, BUILT_IN, WORDS

YES = {
    "annotation-key": ["a", "Example.org/A_b.c-d"],
    "byte": ["", "YQ==", "YWJj\nYWJj"],
    "cidr": ["10.0.0.0/8", "10.1.2.3/24", "::/0", "2001:db8::/32"],
    "config-key": ["a", ".a", "A_b-c.d", "x" * 253],
    "container-resource": ["cpu", "hugepages-2Mi", "example.com/gpu"],
    "cron": ["* * * * *", "*/5 0-23/2 1,15 jan-dec SUN", "@daily", "@every 1h30m", "0 0 ? * *"],
    "dns-label": ["a", "a-1", "1a", "a" * 63],
    "dns-subdomain": ["a.b-c.1", "a" * 253],
    "env-name": ["A", "a.b-c", "with space"],
    "go-micro-time": ["2026-01-02T03:04:05.000006Z"],
    "go-time": ["2024-02-29T23:59:59Z", "2026-01-02T03:04:05.123+05:30"],
    "https-url": ["https://a.b/c", "https://[::1]:8443"],
    "ingress-host": ["a.b", "*.a.b"],
    "ip": ["10.0.0.1", "2001:db8::1", "::ffff:1.2.3.4"],
    "label-value": ["", "a", "A_b.c-1", "a" * 63],
    "local-path": ["a/b", "a..b"],
    "percent": ["0%", "150%"],
    "percent-100": ["0%", "100%"],
    "port-name": ["http", "a-1", "1-a", "a" * 15],
    "qualified-name": ["a", "a.b/c_D", "a.b/" + "c" * 63],
    "quantity": ["1", "-1", "+.5", "1.", "100m", "1.5Gi", "2e3", "2E-3", "1n", "1k", "1Ei"],
    "quantity-not-negative": ["0", "-0", "1", "-0.0"],
    "resource-field": ["limits.cpu", "requests.hugepages-2Mi"],
    "time-zone": ["Europe/Rome", "UTC", "EST", "Etc/GMT+2"],
    "webhook-name": ["a.b.c"],
    "crd-date": ["2026-01-31"],
    "crd-date-time": ["2026-01-02T03:04:05Z"],
    "crd-duration": ["1h30m", "-1.5s", "0", "3 days"],
    "crd-email": ["a@b.c"],
    "crd-hostname": ["a.b", "A-b"],
    "crd-ipv4": ["1.2.3.4"],
    "crd-ipv6": ["::1"],
    "crd-mac": ["00:11:22:33:44:55", "0011.2233.4455"],
    "crd-uri": ["https://a.b/c?d#e", "/path"],
    "crd-uuid": ["6a1b6d0e-0000-4000-8000-000000000000", "6A1B6D0E000040008000000000000000"],
    "crd-uuid4": ["6a1b6d0e-0000-4000-8000-000000000000"],
}
NO = {
    "annotation-key": ["", "a b", "a/b/c", "/a"],
    "byte": ["Y", "YQ", "YQ=", "Y Q=", "plain text"],
    "cidr": ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/08", "::/129", "a/8", "10.0.0.0/٨"],
    "config-key": ["", ".", "..", "..a", "a/b", "a b", "ключ", "x" * 254],
    "container-resource": ["gpu", "a b/c"],
    "cron": ["0 0 * * * *", "60 * * * *", "0 0 L * *", "0 0 * * 7", "30-10 * * * *", "*/0 * * * *"],
    "dns-label": ["-a", "a-", "A", "a.b", "a" * 64],
    "dns-subdomain": ["a..b", "a.", "a_b", "A", "a" * 254],
    "env-name": ["A=B", "é", "a\n"],
    "go-micro-time": ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.006Z"],
    "go-time": [
        "2026-02-29T00:00:00Z",
        "2026-01-02",
        "2026-01-02T03:04:05",
        "2026-13-01T00:00:00Z",
    ],
    "https-url": ["http://a.b", "a.b", "https://a.b/c?d", "https://[a"],
    "ingress-host": ["*", "10.0.0.1", "http://a", "a.*"],
    "ip": ["10.0.0.256", "10.0.0.01", "a.b", "::1%eth0", "1.2.3"],
    "label-value": ["a/b", "é", "-a", "a" * 64],
    "local-path": ["/a", "../a", "a/../b"],
    "percent": ["25 %", "a", "%"],
    "percent-100": ["101%", "", "-1%"],
    "port-name": ["8080", "a--b", "-a", "A", "a" * 16],
    "qualified-name": ["a b", "A.b/c", "a/b/c", "c" * 64],
    "quantity": ["", "1Gb", "1 Gi", "0,5", "1K", "1mi", "abc", "1e", "."],
    "quantity-not-negative": ["-1", "-0.5Gi"],
    "resource-field": ["limits.gpu", "cpu", "limits.storage"],
    "time-zone": ["", "Local", "europe/rome", "+02:00", "Europe/Amsterdan"],
    "webhook-name": ["", "a.b", "A.b.c"],
    "crd-date": ["2026-13-01", "x"],
    "crd-date-time": ["2026-02-03T04:05:06"],
    "crd-duration": ["", "h"],
    "crd-email": ["a"],
    "crd-hostname": ["a b", ""],
    "crd-ipv4": ["1.2.3", "::1"],
    "crd-ipv6": ["1.2.3.4"],
    "crd-mac": ["zz:11"],
    "crd-uri": ["not a uri", "relative/path", "https://%zz"],
    "crd-uuid": ["123"],
    "crd-uuid4": ["6a1b6d0e-0000-3000-8000-000000000000"],
}


@pytest.mark.parametrize("name", YES)
def test_good_texts(name: str) -> None:
    assert [text for text in YES[name] if not ALL[name](text)] == []


@pytest.mark.parametrize("name", NO)
def test_bad_texts(name: str) -> None:
    assert [text for text in NO[name] if ALL[name](text)] == []


def test_every_format_of_built_in_kinds_has_words() -> None:
    assert BUILT_IN.keys() == WORDS.keys()


def test_long_texts_take_no_time() -> None:
    text = "a" * 200_000 + "@"
    assert not [name for name, check in ALL.items() if name.startswith("crd-") and check(text)]
