"""Who sent a request, as far as its address tells."""

from collections.abc import Mapping
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Any

from django.conf import settings

# Whoever has one IPv6 address usually has all that share its first 64 bits.
IPV6_PREFIX = 64


def client_address(environ: Mapping[str, Any]) -> str:
    """Return the address, or the network, from which a request came.

    A trusted proxy adds to X-Forwarded-For whom it speaks for; what stands before that, anybody may have written.
    """
    text = environ.get("REMOTE_ADDR", "")
    if settings.TRUST_PROXY:
        text = environ.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip() or text
    try:
        address = ip_address(text)
    except ValueError:
        return ""  # a socket of this machine's
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return str(IPv6Network((address, IPV6_PREFIX), strict=False))
    return str(address)
