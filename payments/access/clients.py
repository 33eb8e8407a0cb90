"""The address of the client that sent a request."""

import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any

from payments.conf import conf

# A client with one IPv6 address usually controls the whole /64 network.
IPV6_PREFIX = 64

WITH_PORT = re.compile(r"(?:\[([^\]]+)\]|([0-9.]+))(?::[0-9]+)?")


def client_address(environ: Mapping[str, Any]) -> str:
    """Return the address of the client, or its network for IPv6; an empty text for a local socket.

    A trusted proxy appends the client's address to X-Forwarded-For. The client can forge the entries before it.
    """
    candidates = [environ.get("REMOTE_ADDR", "")]
    if conf.TRUST_PROXY:
        candidates.insert(0, environ.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip())
    address = next(filter(None, map(parse_address, candidates)), None)
    if address is None:
        return ""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return str(IPv6Network((address, IPV6_PREFIX), strict=False))
    return str(address)


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Parse an address, with or without a port: `203.0.113.7:51234`, `[2001:db8::1]:443`."""
    match = WITH_PORT.fullmatch(text)
    try:
        return ip_address(match[1] or match[2] if match else text)
    except ValueError:
        return None
