"""What the environment's variables may hold: each parser gives a setting or says what is wrong with the text."""

import os
import re
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from environs import ValidationError
from psycopg.conninfo import conninfo_to_dict

from payments.runtime.rate_limits import RateLimit

# Readers go on while an import writes, and what is committed outlives a power cut.
SQLITE = {
    "ENGINE": "payments.database.sqlite",
    "CONN_MAX_AGE": None,
    "CONN_HEALTH_CHECKS": True,
    "OPTIONS": {
        "init_command": "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL",
        "transaction_mode": "IMMEDIATE",
        "timeout": 5,
    },
}

# An open connection serves request after request; one that died meanwhile is noticed and replaced. Values travel
# beside their statement.
POSTGRESQL = {
    "ENGINE": "payments.database.postgresql",
    "CONN_MAX_AGE": None,
    "CONN_HEALTH_CHECKS": True,
}
BOUND = {"server_side_binding": True}

PERIOD_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}


def database(url: str) -> dict[str, Any]:
    """Read `sqlite:///PATH` or a PostgreSQL connection URI, the latter as libpq does: several hosts, TLS, timeouts.

    Its complaints would repeat the password, so they are not passed on.
    """
    if path := re.fullmatch(r"sqlite:///(.+)", url):
        return {**SQLITE, "NAME": path[1]}
    if not url.startswith(("postgres://", "postgresql://")):
        raise ValidationError("Must begin with postgresql:// or sqlite:///.")
    try:
        parameters = conninfo_to_dict(url)
    except psycopg.Error:
        raise ValidationError(
            "Not a PostgreSQL connection URI (postgresql://USER:PASSWORD@HOST:PORT/NAME?PARAMETER=VALUE)."
        ) from None
    named = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    address = {setting: str(parameters.pop(name, "")) for setting, name in named.items()}
    if not address["NAME"]:
        raise ValidationError("Names no database.")
    return {**POSTGRESQL, **address, "OPTIONS": {**BOUND, **parameters}}


def base_url(text: str) -> str:
    """Read `https://HOST[:PORT][/PATH]`; a slash at its end is dropped. An empty text is no address."""
    if not text:
        return ""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or re.search(r"[\s?#@\\]", text):
        raise ValidationError("Must be http(s)://HOST[:PORT][/PATH].")
    return f"{parts.scheme}{text[len(parts.scheme) :]}".rstrip("/")


def directory(text: str) -> Path | None:
    """Read an absolute path. Of several, which systemd separates by colons, return the first; None if there is none."""
    if not text:
        return None
    path = Path(text.partition(":")[0])
    if not path.is_absolute():
        raise ValidationError("Must be an absolute path.")
    return path


def rate(text: str) -> RateLimit | None:
    """Read how many requests are allowed within which time, such as `600/minute`; an empty text is no limit."""
    if not text:
        return None
    found = re.fullmatch(r"([1-9][0-9]{0,8})/(second|minute|hour|day)", text)
    if not found:
        raise ValidationError("Must be NUMBER/second, NUMBER/minute, NUMBER/hour or NUMBER/day.")
    return RateLimit(int(found[1]), seconds=PERIOD_SECONDS[found[2]])


def hosts(text: str) -> list[str]:
    """Read host names separated by commas."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise ValidationError("Must be host names, separated by commas.")
    return names


def secret_keys(text: str) -> list[str]:
    """Read keys separated by commas; an empty text is none. An empty key would be one that everybody knows."""
    found = [key.strip() for key in text.split(",")] if text else []
    if not all(found):
        raise ValidationError("Must be keys, separated by commas.")
    return found


def kept_secret(path: Path) -> str:
    """Return the secret that `path` keeps, made on first use; only its owner can read it."""
    try:
        return path.read_text()
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}")
    draft.touch(mode=0o600, exist_ok=False)
    draft.write_text(secrets.token_urlsafe(64))
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        pass  # another process was first, and its secret holds
    finally:
        draft.unlink()
    return path.read_text()
