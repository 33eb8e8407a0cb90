"""Who sent a request, as far as its address tells."""

import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any

from django.conf import settings

# Whoever has one IPv6 address usually has all that share its first 64 bits.
IPV6_PREFIX = 64

WITH_PORT = re.compile(r"(?:\[([^\]]+)\]|([0-9.]+))(?::[0-9]+)?")


def client_address(environ: Mapping[str, Any]) -> str:
    """Return the address, or the network, from which a request came.

    A trusted proxy adds to X-Forwarded-For whom it speaks for; what stands before that, anybody may have written.
    """
    texts = [environ.get("REMOTE_ADDR", "")]
    if settings.TRUST_PROXY:
        texts.insert(0, environ.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip())
    address = next(filter(None, map(read_address, texts)), None)
    if address is None:
        return ""  # a socket of this machine's
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return str(IPv6Network((address, IPV6_PREFIX), strict=False))
    return str(address)


def read_address(text: str) -> IPv4Address | IPv6Address | None:
    """Read an address, which some proxies give with its port: `203.0.113.7:51234`, `[2001:db8::1]:443`."""
    found = WITH_PORT.fullmatch(text)
    try:
        return ip_address(found[1] or found[2] if found else text)
    except ValueError:
        return None
