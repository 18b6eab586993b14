"""Places of charts in classic repositories, as the command line writes them."""

from __future__ import annotations

import pytest

from ocipack.errors import Misuse
from ocipack.oci.location import Location

HEX = "a" * 64


@pytest.mark.parametrize(
    ("text", "address", "reference"),
    [
        ("https://c.example/shop", "https://c.example", "c.example/shop"),
        ("https://c.example/x/shop:1.2.0", "https://c.example/x", "c.example/x/shop:1.2.0"),
        ("http://127.0.0.1:80/shop:v1", "http://127.0.0.1:80", "127.0.0.1:80/shop:v1"),
        ("https://c.example/shop:1.0.0+a.b", "https://c.example", "c.example/shop:1.0.0_a.b"),
        (
            f"https://c.example/shop:1@sha256:{HEX}",
            "https://c.example",
            f"c.example/shop:1@sha256:{HEX}",
        ),
        ("https://charts/shop", "https://charts", "charts:443/shop"),
        ("http://charts/shop", "http://charts", "charts:80/shop"),
        ("https://C.example/Raw/a~b/./_x_/shop", None, "c.example/raw/a-b/x/shop"),
        ("https://[::1]:8443/shop", "https://[::1]:8443", "[::1]:8443/shop"),
    ],
)
def test_a_chart_has_an_address_and_a_name_among_registries(
    text: str, address: str | None, reference: str
) -> None:
    place = Location.parse(f"helm+{text}", cwd="/")

    assert place.is_chart
    assert not place.is_layout
    assert str(place.reference) == reference
    assert place.chart[1] == "shop"
    assert address in (None, place.chart[0])
    assert Location.parse(str(place), cwd="/elsewhere") == place


def test_the_name_and_path_are_kept_as_they_are_written() -> None:
    place = Location.parse("helm+https://c.example/Raw/Main/Shop:1", cwd="/")

    assert place.chart == ("https://c.example/Raw/Main", "Shop")
    assert str(place) == "helm+https://c.example/Raw/Main/Shop:1"


@pytest.mark.parametrize(
    "text",
    [
        "https://c.example",
        "https://c.example/",
        "https:///shop",
        "https://user:secret@c.example/shop",
        "https://c.example/shop?token=secret",
        "https://c.example/shop#x",
        "https://c.example/a b/shop",
        "https://c.example/---/...",
        "ftp://c.example/shop",
    ],
)
def test_what_is_no_chart_is_refused(text: str) -> None:
    with pytest.raises(Misuse) as refused:
        Location.parse(f"helm+{text}", cwd="/")
    assert "secret" not in str(refused.value)


def test_nothing_is_below_a_chart() -> None:
    with pytest.raises(Misuse, match="nothing is below"):
        Location.parse("helm+https://c.example/shop", cwd="/").below("x")
