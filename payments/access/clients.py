"""The client that sent a request: one identity for shares of threads, rate limits, logs and records.

Bytes that the client chooses, such as spaces around its key, do not change the identity.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from importlib import import_module
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.db import Error, close_old_connections
from django.http import parse_cookie

from payments.conf import conf
from payments.database.migration_state import is_unmigrated
from payments.models import identifiers
from payments.runtime.circuit_breaker import Guard
from payments.runtime.process import process

ENVIRON_KEY = "payments.client"  # of the WSGI environment

# So many hexadecimal digits of a digest are unique among the keys of a service.
DIGEST_CHARACTERS = 12

# A client with one IPv6 address usually controls the whole /64 network.
IPV6_PREFIX = 64

SESSIONS = "sessions"  # the name of their circuit breaker

# Other texts cause no query.
STORED_SESSION = re.compile("[a-z0-9]{32}")

# A longer header is not searched: it would take as long as a page, before any share limits it.
COOKIES_CHARACTERS_MAX = 8192

WITH_PORT = re.compile(r"(?:\[([^\]]+)\]|([0-9.]+))(?::[0-9]+)?")


class ClientKind(StrEnum):
    """What identifies a client. The key need not exist; the user is the one of a session."""

    KEY = "key"
    USER = "user"
    ADDRESS = "address"


class Client(NamedTuple):
    """A client: the digest of its API key, the number of its user, or its address."""

    kind: ClientKind
    id: str

    @property
    def key_digest(self) -> str | None:
        return self.id if self.kind == ClientKind.KEY else None

    def __str__(self) -> str:
        """Return the client as the log names it, such as `user 7`."""
        return f"{self.kind} {self.id[:DIGEST_CHARACTERS] if self.kind == ClientKind.KEY else self.id or '-'}"


def client_of(environ: dict[str, Any]) -> Client:
    """Return the client of a request. It is computed once: `environ` keeps it.

    For pages, the handler has found the user of the session.
    """
    client: Client | None = environ.get(ENVIRON_KEY)
    if client is None:
        client = environ[ENVIRON_KEY] = client_with_key(bearer_token(environ) or "") or client_at_address(environ)
    return client


def bearer_token(environ: Mapping[str, Any]) -> str | None:
    """Return the text after `Bearer` in the header Authorization (RFC 6750); None without one."""
    scheme, _, credentials = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    return credentials.strip() if scheme.lower() == "bearer" else None


def client_with_key(text: str) -> Client | None:
    """Return the client with the API key that a text contains; None for a text without the form of a key."""
    return Client(ClientKind.KEY, identifiers.digest(text)) if identifiers.is_key(text) else None


def client_at_address(environ: Mapping[str, Any]) -> Client:
    return Client(ClientKind.ADDRESS, client_address(environ))


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


def find_user(environ: Mapping[str, Any]) -> str | None:
    """Return the number of the user whose session a request names; None without such a session.

    :raises Error: the database is unavailable
    """
    cookies = environ.get("HTTP_COOKIE", "")
    is_searched = 0 < len(cookies) <= COOKIES_CHARACTERS_MAX
    session_key = parse_cookie(cookies).get(settings.SESSION_COOKIE_NAME, "") if is_searched else ""
    if not STORED_SESSION.fullmatch(session_key):
        return None
    session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    try:
        with process.deadline, Guard(process.data_breakers, outages=SESSIONS, timeouts=SESSIONS):
            close_old_connections()
            user_id: str | None = session.get(SESSION_KEY)
    except Error as error:
        if is_unmigrated(error):
            return None  # the page explains it
        raise
    return user_id
