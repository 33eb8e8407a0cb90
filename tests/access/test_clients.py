"""The address that limits count by."""

import pytest
from pytest_django import Settings

from payments.access.clients import client_address

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("", ""),
    ],
)
def test_ipv6_address_counts_as_its_network_and_ipv4_as_itself(address: str, counted: str) -> None:
    assert client_address({"REMOTE_ADDR": address}) == counted


@pytest.mark.parametrize(
    ("trusted", "forwarded", "counted"),
    [
        (True, "198.51.100.7, 203.0.113.1", "203.0.113.1"),
        (True, "203.0.113.1:51234", "203.0.113.1"),
        (True, "[2001:db8:1::1]:443", "2001:db8:1::/64"),
        (True, "unknown", "192.0.2.1"),
        (True, "", "192.0.2.1"),
        (False, "203.0.113.1", "192.0.2.1"),
    ],
)
def test_only_the_last_address_of_a_trusted_proxy_counts(
    settings: Settings, trusted: bool, forwarded: str, counted: str
) -> None:
    settings.PAYMENTS_TRUST_PROXY = trusted

    assert client_address({"REMOTE_ADDR": "192.0.2.1", "HTTP_X_FORWARDED_FOR": forwarded}) == counted
