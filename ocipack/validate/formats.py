"""The formats that an API server checks, as predicates over text, and how each is worded.

The first table is for built-in kinds (the words of `scripts/constraints.toml`), the second for
custom resources (the formats of structural schemas, whose names get the prefix `crd-`, because
JSON Schema has other rules for the same names). Empty text is "not set" to the server wherever a
built-in field is optional; whether it may be empty is the schema's business, so the predicates of
the first table let it pass, but for those that say otherwise.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import urlsplit

from ocipack.k8s.schemas import catalog

_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_ENV_NAME = re.compile(r"[ -<>-~]*")
_PORT_NAME = re.compile(r"(?!.*--)(?=.*[a-z])[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_PERCENT = re.compile(r"([0-9]+)%")
_QUANTITY = re.compile(
    r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[KMGTPE]i|[numkMGTPE]?|[eE][+-]?[0-9]+)"
)
_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)([.,]\d+)?(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)"
)
_DIGIT_OCTETS = re.compile(r"(?:0|[1-9][0-9]{0,2})(?:\.(?:0|[1-9][0-9]{0,2})){3}")
_RESOURCES = {"cpu", "memory", "storage", "ephemeral-storage"}
_CRON_MACROS = {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}
_CRON_MONTHS = [
    *("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
]
_CRON_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_NO_NAMES: list[str] = []

Predicate = Callable[[str], bool]


def dns_label(text: str) -> bool:
    """RFC 1123 label: at most 63 characters of `a-z0-9-`, no `-` at the ends."""
    return len(text) <= 63 and _LABEL.fullmatch(text) is not None  # noqa: PLR2004 - RFC 1123


def dns_subdomain(text: str) -> bool:
    """RFC 1123 subdomain: labels joined by dots, at most 253 characters."""
    return len(text) <= 253 and _SUBDOMAIN.fullmatch(text) is not None  # noqa: PLR2004 - RFC 1123


def qualified_name(text: str) -> bool:
    """`[prefix/]name`: a subdomain, and at most 63 characters of `A-Za-z0-9-_.`."""
    prefix, slash, name = text.rpartition("/")
    if slash and not dns_subdomain(prefix):
        return False
    return len(name) <= 63 and _NAME.fullmatch(name) is not None  # noqa: PLR2004 - API machinery


def annotation_key(text: str) -> bool:
    """A qualified name; the server compares annotation keys in lower case."""
    return qualified_name(text.lower())


def label_value(text: str) -> bool:
    """Empty, or at most 63 characters of `A-Za-z0-9-_.`, letters or digits at the ends."""
    return not text or (len(text) <= 63 and _NAME.fullmatch(text) is not None)  # noqa: PLR2004 - API machinery


def config_key(text: str) -> bool:
    """Key of a ConfigMap or Secret."""
    if len(text) > 253 or not _CONFIG_KEY.fullmatch(text):  # noqa: PLR2004 - API machinery
        return False
    return text != "." and not text.startswith("..")


def port_name(text: str) -> bool:
    """RFC 6335 service name, at most 15 characters."""
    return len(text) <= 15 and _PORT_NAME.fullmatch(text) is not None  # noqa: PLR2004 - RFC 6335


def quantity(text: str) -> bool:
    """A resource quantity: `100m`, `1.5Gi`, `2e3`."""
    return _QUANTITY.fullmatch(text) is not None


def _quantity_not_negative(text: str) -> bool:
    found = _QUANTITY.fullmatch(text)
    return found is not None and (found[1] != "-" or not re.search(r"[1-9]", found[2]))


def ip_address(text: str) -> bool:
    """An IPv4 or IPv6 address as Go reads it: no leading zeros, no zone."""
    try:
        return bool(IPv6Address(text).packed) and "%" not in text if ":" in text else ipv4(text)
    except ValueError:
        return False


def ipv4(text: str) -> bool:
    """Four decimal numbers without leading zeros."""
    try:
        return _DIGIT_OCTETS.fullmatch(text) is not None and bool(IPv4Address(text).packed)
    except ValueError:
        return False


def ipv6(text: str) -> bool:
    """An IPv6 address without a zone."""
    return ":" in text and ip_address(text)


def cidr(text: str) -> bool:
    """An address, a slash and the length of its prefix; host bits may be set."""
    address, _, length = text.partition("/")
    if not (length.isdecimal() and length.isascii()) or (length != "0" and length[0] == "0"):
        return False
    return ip_address(address) and int(length) <= (128 if ":" in address else 32)


def base64_text(text: str) -> bool:
    """Standard base64 with padding, line breaks allowed, as Go decodes `[]byte`."""
    try:
        binascii.a2b_base64(text.replace("\n", "").replace("\r", ""), strict_mode=True)
    except ValueError:
        return False
    return True


def time(text: str) -> bool:
    """RFC 3339 with a zone, as Go reads it."""
    found = _TIME.fullmatch(text)
    if not found:
        return False
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    if not 1 <= month <= len(days) or not 1 <= day <= days[month - 1]:
        return False
    return hour < 24 and minute < 60 and second < 60  # noqa: PLR2004 - a clock


def _micro_time(text: str) -> bool:
    found = _TIME.fullmatch(text)
    return time(text) and found is not None and len(found[7] or "") == len(".000000")


def cron(text: str) -> bool:
    """Five fields or a macro, as robfig/cron's standard parser reads them."""
    if text.startswith("@every "):
        return duration(text.removeprefix("@every "))
    if text.startswith("@"):
        return text in _CRON_MACROS
    fields = text.split()
    ranges = (
        (0, 59, _NO_NAMES),
        (0, 23, _NO_NAMES),
        (1, 31, _NO_NAMES),
        (1, 12, _CRON_MONTHS),
        (0, 6, _CRON_DAYS),
    )
    return len(fields) == len(ranges) and all(
        _cron_part(part, low, high, names)
        for field, (low, high, names) in zip(fields, ranges, strict=True)
        for part in field.split(",")
        if part or field == ","
    )


def _cron_part(part: str, low: int, high: int, names: list[str]) -> bool:
    """One item of a list: `*`, `?`, `a`, `a-b`, each with an optional `/step`."""
    span, slash, step = part.partition("/")
    if slash and not (step.isdecimal() and int(step) > 0):
        return False
    if span in {"*", "?"}:
        return True
    ends = span.split("-")
    numbers = [names.index(e.lower()) + low if e.lower() in names else _number(e) for e in ends]
    if len(numbers) > 2 or -1 in numbers:  # noqa: PLR2004 - a range has two ends
        return False
    return low <= numbers[0] <= numbers[-1] <= high


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and text.isascii() else -1


def duration(text: str) -> bool:
    """Go's `time.ParseDuration`: `1h30m`, `250ms`, `-1.5s`, `0`."""
    unsigned = text[1:] if text[:1] in {"+", "-"} else text
    number = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
    return unsigned == "0" or bool(
        re.fullmatch(rf"(?:{number}(?:ns|us|µs|μs|ms|s|m|h))+", unsigned)
    )


def _ingress_host(text: str) -> bool:
    if ip_address(text):
        return False
    return dns_subdomain(text.removeprefix("*."))


def _webhook_name(text: str) -> bool:
    return dns_subdomain(text) and text.count(".") >= 2  # noqa: PLR2004 - three segments


def _https_url(text: str) -> bool:
    try:
        url = urlsplit(text)
        return url.scheme == "https" and bool(url.hostname) and not (url.query or url.fragment)
    except ValueError:
        return False


def _container_resource(text: str) -> bool:
    if "/" in text:
        return qualified_name(text)
    return text in _RESOURCES or text.startswith("hugepages-")


def _resource_field(text: str) -> bool:
    verb, _, resource = text.partition(".")
    return verb in {"limits", "requests"} and (
        resource in _RESOURCES - {"storage"} or resource.startswith("hugepages-")
    )


def _limit_type(text: str) -> bool:
    return text in {"Pod", "Container", "PersistentVolumeClaim"} or (
        "/" in text and qualified_name(text)
    )


def _local_path(text: str) -> bool:
    return not text.startswith("/") and ".." not in text.split("/")


def _time_zone(text: str) -> bool:
    return text == "UTC" or text in catalog.time_zones()


def _optional(check: Predicate) -> Predicate:
    return lambda text: not text or check(text)


BUILT_IN: dict[str, Predicate] = {
    "annotation-key": annotation_key,
    "byte": base64_text,
    "cidr": _optional(cidr),
    "cidr-trimmed": lambda text: cidr(text.strip()),
    "config-key": config_key,
    "container-resource": _container_resource,
    "cron": _optional(cron),
    "dns-label": _optional(dns_label),
    "dns-subdomain": _optional(dns_subdomain),
    "env-name": lambda text: _ENV_NAME.fullmatch(text) is not None,
    "go-micro-time": _micro_time,
    "go-time": time,
    "https-url": _optional(_https_url),
    "ingress-host": _optional(_ingress_host),
    "ip": _optional(ip_address),
    "label-value": label_value,
    "limit-type": _limit_type,
    "local-path": _local_path,
    "no-parent": lambda text: ".." not in text.split("/"),
    "percent": _optional(lambda text: _PERCENT.fullmatch(text) is not None),
    "percent-100": lambda text: (m := _PERCENT.fullmatch(text)) is not None and int(m[1]) <= 100,  # noqa: PLR2004
    "port-name": _optional(port_name),
    "qualified-name": _optional(qualified_name),
    "quantity": quantity,
    "quantity-not-negative": _quantity_not_negative,
    "quota-resource": qualified_name,
    "resource-field": _resource_field,
    "time-zone": _time_zone,
    "trimmed": lambda text: text == text.strip(),
    "webhook-name": _webhook_name,
}


def _uri(text: str) -> bool:
    """`url.ParseRequestURI`: absolute, or a path from the root; no spaces or controls."""
    if re.search(r"[\x00-\x20\x7f]", text) or re.search(r"%(?![0-9A-Fa-f]{2})", text):
        return False
    if text.startswith("/"):
        return True
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*:.", text) is not None


_HOST = r"[A-Za-z0-9_][A-Za-z0-9_-]{0,62}"
_UUID = r"[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{}[0-9a-f]{{3}}-?{}[0-9a-f]{{3}}-?[0-9a-f]{{12}}"
_CRD_PATTERNS = {
    "bsonobjectid": r"[0-9a-fA-F]{24}",
    "creditcard": r"(?:[0-9][- ]?){12,18}[0-9]",
    "date": r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])",
    "email": r"[^@\s]+@[^@\s]+|.+<[^@\s]+@[^@\s]+>",
    "hexcolor": r"#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})",
    "hostname": rf"(?=.{{1,255}}\Z){_HOST}(?:\.{_HOST})*\.?",
    "isbn": r"(?:97[89][- ]?)?(?:[0-9][- ]?){9}[0-9Xx]",
    "isbn10": r"(?:[0-9][- ]?){9}[0-9Xx]",
    "isbn13": r"(?:[0-9][- ]?){12}[0-9]",
    "mac": r"(?:[0-9A-Fa-f]{2}[:-]){5,19}[0-9A-Fa-f]{2}|(?:[0-9A-Fa-f]{4}\.){2,9}[0-9A-Fa-f]{4}",
    "rgbcolor": r"rgb\((?:\s*\d{1,3}\s*,){2}\s*\d{1,3}\s*\)",
    "ssn": r"\d{3}[- ]?\d{2}[- ]?\d{4}",
    "uuid": r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}",
    "uuid3": "(?i)" + _UUID.format("3", "[0-9a-f]"),
    "uuid4": "(?i)" + _UUID.format("4", "[89ab]"),
    "uuid5": "(?i)" + _UUID.format("5", "[89ab]"),
}


_LONGEST = 4096  # nothing in these formats is longer; expressions backtrack


def _matcher(pattern: str) -> Predicate:
    # compiled when it is first needed: most runs meet none of these
    return lambda text: len(text) <= _LONGEST and re.fullmatch(pattern, text) is not None


def _crd_duration(text: str) -> bool:
    return duration(text) or bool(re.fullmatch(r"(?:\d+(?:\.\d+)?\s*[a-zµμ]+\s*)+", text.lower()))


CUSTOM: dict[str, Predicate] = {
    **{f"crd-{name}": _matcher(pattern) for name, pattern in _CRD_PATTERNS.items()},
    "crd-byte": base64_text,
    "crd-cidr": cidr,
    "crd-date-time": lambda text: time(text.upper().replace(" ", "T", 1)),
    "crd-datetime": lambda text: time(text.upper().replace(" ", "T", 1)),
    "crd-duration": _crd_duration,
    "crd-ipv4": ipv4,
    "crd-ipv6": ipv6,
    "crd-uri": _uri,
}

ALL: dict[str, Predicate] = {**BUILT_IN, **CUSTOM}

NAMES = {
    *("annotation-key", "config-key", "container-resource", "dns-label", "dns-subdomain"),
    *("env-name", "ingress-host", "label-value", "port-name", "qualified-name", "quota-resource"),
    "webhook-name",
}

WORDS: dict[str, str] = {
    "annotation-key": "must be a qualified name: an optional DNS prefix and a slash, then at most"
    " 63 letters, digits, `-`, `_` or `.`",
    "byte": "must be base64 with padding",
    "cidr": "must be an address range such as 10.9.8.0/24",
    "cidr-trimmed": "must be an address range such as 10.9.8.0/24",
    "config-key": "must consist of letters, digits, `-`, `_` or `.`, at most 253 of them",
    "container-resource": "must be cpu, memory, ephemeral-storage, hugepages-SIZE or a name with"
    " a domain, such as example.com/gpu",
    "cron": "must be a cron schedule of five fields, or @hourly, @daily, @weekly, @monthly,"
    " @yearly",
    "dns-label": "must be a DNS label: at most 63 lower-case letters, digits or `-`",
    "dns-subdomain": "must be a DNS name in lower case: letters, digits, `-` or `.`",
    "env-name": "must consist of printable ASCII characters other than `=`",
    "go-micro-time": "must be a time such as 2006-01-02T15:04:05.000000Z",
    "go-time": "must be a time such as 2006-01-02T15:04:05Z",
    "https-url": "must be an https URL without query and fragment",
    "ingress-host": "must be a DNS name in lower case, or `*.` and one; not an address",
    "ip": "must be an IP address such as 10.9.8.7 or 2001:db8::ffff",
    "label-value": "must be at most 63 letters, digits, `-`, `_` or `.`, and start and end with a"
    " letter or digit",
    "limit-type": "must be Pod, Container, PersistentVolumeClaim or a name with a domain",
    "local-path": "must be a relative path without `..`",
    "no-parent": "must not contain `..`",
    "percent": "must be a number, or digits and `%`",
    "percent-100": "must be a number, or digits and `%`, not above 100%",
    "port-name": "must be a port name: at most 15 lower-case letters, digits or `-`, with at"
    " least one letter, no `--`",
    "qualified-name": "must be a qualified name: an optional DNS prefix and a slash, then at most"
    " 63 letters, digits, `-`, `_` or `.`",
    "quantity": "must be a quantity such as 500m, 1.5Gi or 2e3",
    "quantity-not-negative": "must be a quantity such as 500m, 1.5Gi or 2e3, not below 0",
    "quota-resource": "must be a qualified resource name",
    "resource-field": "must be limits or requests of cpu, memory, ephemeral-storage or hugepages",
    "time-zone": "must be the name of a time zone such as Europe/Rome",
    "trimmed": "must not start or end with white space",
    "webhook-name": "must be a DNS name of at least three segments",
}
