"""Parsers for environment variables. Each returns a setting, or raises a ValidationError that says what to write."""

import os
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

import psycopg
from environs import ValidationError
from psycopg.conninfo import conninfo_to_dict

from payments.conf import is_time_zone
from payments.runtime.rate_limits import RateLimit

# In WAL mode, readers continue while an import writes. `synchronous = FULL` makes commits survive a power cut.
SQLITE: dict[str, Any] = {
    "ENGINE": "payments.database.sqlite",
    "CONN_MAX_AGE": None,
    "CONN_HEALTH_CHECKS": True,
    "OPTIONS": {
        "init_command": "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL",
        "transaction_mode": "IMMEDIATE",
        "timeout": 5,
    },
}

# Each thread keeps its connection, and each request replaces a broken one. After a minute, a connection is replaced in
# any case: PostgreSQL keeps its plans until a table's definition or its number of rows in the catalog changes. A plan
# from between a table's first VACUUM and its first ANALYZE would read all payments for each page. Also, some firewalls
# drop idle connections without a word, and a replica that has recovered must be used again.
POSTGRESQL = {
    "ENGINE": "payments.database.postgresql",
    "CONN_MAX_AGE": 60,
    "CONN_HEALTH_CHECKS": True,
}

# The statements of the API are prepared at their first use, all others at the sixth.
POSTGRESQL_OPTIONS = {"server_side_binding": True, "prepare_threshold": 5}

# A part of the URL for poolers that do not track prepared statements. libpq does not know it.
PREPARES_NOTHING = re.compile(r"[?&]prepare_threshold=off(?=&|$)")

TRUE = {"true", "t", "yes", "y", "on", "1"}
FALSE = {"false", "f", "no", "n", "off", "0"}

# How similar a variable must be to a setting: from 0 to 1, by difflib. DATABASE_URI and DATABASE_URL have 0.92,
# PORTS and PORT 0.89, DATABASE_USER and DATABASE_URL 0.88.
RESEMBLANCE_MIN = 0.9

# The length of a secret key, its number of different characters, and the start of the keys of Django's `startproject`.
SECRET_CHARACTERS_MIN = 50
DIFFERENT_MIN = 5
GENERATED = "django-insecure-"

PERIOD_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}


def database(url: str) -> dict[str, Any]:
    """Return Django's settings for `sqlite:///PATH` or a PostgreSQL connection URI, which libpq parses."""
    if path := re.fullmatch(r"sqlite:///(.+)", url):
        return {**SQLITE, "NAME": path[1]}
    if not url.startswith(("postgres://", "postgresql://")):
        raise ValidationError("Must start with postgresql:// or sqlite:///.")
    options = POSTGRESQL_OPTIONS | ({"prepare_threshold": None} if PREPARES_NOTHING.search(url) else {})
    try:
        parameters = conninfo_to_dict(without_parameter(PREPARES_NOTHING, url))
    except psycopg.Error:
        # libpq's message would contain the password.
        raise ValidationError("Must be postgresql://USER:PASSWORD@HOST:PORT/NAME?PARAMETER=VALUE.") from None
    names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    address = {setting: str(parameters.pop(name, "")) for setting, name in names.items()}
    if not address["NAME"]:
        raise ValidationError("Must contain the name of the database: postgresql://USER:PASSWORD@HOST:PORT/NAME.")
    if has_part_of_password(address):
        raise ValidationError("The password must be percent-encoded: @ is %40, / is %2F.")
    return {**POSTGRESQL, **address, "OPTIONS": {**options, **parameters}}


def without_parameter(pattern: re.Pattern[str], url: str) -> str:
    """Return a URL without a parameter. The first of the remaining parameters follows a question mark."""
    address, *parameters = re.split("[?&]", pattern.sub("", url))
    return f"{address}?{'&'.join(parameters)}" if parameters else address


def has_part_of_password(address: Mapping[str, str]) -> bool:
    """Return whether a password with `@` or `/` has ended too early, so that errors and logs would show the rest."""
    return (
        "@" in address["HOST"].lstrip("@")  # it may start with @, for a socket without a file
        or not re.fullmatch("[0-9,]*", address["PORT"])
        or ("@" in address["NAME"] and not address["USER"])
    )


def split_url(text: str) -> SplitResult | None:
    """Return the parts of `SCHEME://HOST[:PORT][/PATH]`; None for another text."""
    try:
        parts = urlsplit(text)
        is_valid = parts.hostname and parts.port != 0
    except ValueError:
        is_valid = False
    return parts if is_valid and not re.search(r"[\s?#@\\]", text) else None


def base_url(text: str) -> str:
    """Return `https://HOST[:PORT][/PATH]` without a slash at the end; an empty text stays empty."""
    if not text:
        return ""
    parts = split_url(text)
    if parts is None or parts.scheme not in {"http", "https"}:
        raise ValidationError("Must be http(s)://HOST[:PORT][/PATH].")
    return f"{parts.scheme}{text[len(parts.scheme) :]}".rstrip("/")


def choice(text: str, *, choices: Sequence[str]) -> str:
    if text not in choices:
        raise ValidationError(f"Must be {', '.join(choices[:-1])} or {choices[-1]}.")
    return text


def directory(text: str) -> Path | None:
    """Return an absolute path; None for an empty text. systemd joins several paths with `:`; return the first one."""
    if not text:
        return None
    path = Path(text.partition(":")[0])
    if not path.is_absolute():
        raise ValidationError("Must be an absolute path.")
    return path


def rate(text: str) -> RateLimit | None:
    """Return the limit that a text such as `600/minute` describes; None for an empty text."""
    if not text:
        return None
    match = re.fullmatch(r"([1-9][0-9]{0,8})/(second|minute|hour|day)", text)
    if not match:
        raise ValidationError("Must be NUMBER/second, NUMBER/minute, NUMBER/hour or NUMBER/day.")
    return RateLimit(int(match[1]), seconds=PERIOD_SECONDS[match[2]])


def time_zone(text: str) -> str:
    if not is_time_zone(text):
        raise ValidationError("Must be the IANA name of a time zone, such as Europe/Amsterdam.")
    return text


def flag(text: str) -> bool:
    if text.lower() not in TRUE | FALSE:
        raise ValidationError("Must be true or false.")
    return text.lower() in TRUE


def number(text: str, *, maximum: int) -> int | None:
    if not text:
        return None
    if not re.fullmatch("[1-9][0-9]{0,9}", text) or int(text) > maximum:
        raise ValidationError(f"Must be a whole number from 1 to {maximum}.")
    return int(text)


def seconds(text: str, *, minimum: int, maximum: int = 10**9) -> int:
    if not re.fullmatch("[0-9]{1,10}", text) or not minimum <= int(text) <= maximum:
        raise ValidationError(f"Must be a whole number of seconds from {minimum} to {maximum}.")
    return int(text)


def duration(text: str, *, minimum: int, maximum: int) -> float:
    if not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,3})?", text) or not minimum <= float(text) <= maximum:
        raise ValidationError(f"Must be a number of seconds from {minimum} to {maximum}, such as 2.5.")
    return float(text)


def hosts(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise ValidationError("Must be host names, separated by commas.")
    return names


def secret_keys(text: str) -> list[str]:
    """Return keys that are separated by commas. An empty key is refused: everyone could sign sessions with it."""
    keys = [key.strip() for key in text.split(",")] if text else []
    if not all(keys):
        raise ValidationError("Must be keys, separated by commas.")
    return keys


def is_strong(key: str) -> bool:
    """Return whether a secret key meets the conditions of Django's check, which only warns (security.W009)."""
    return len(key) >= SECRET_CHARACTERS_MIN and len(set(key)) >= DIFFERENT_MIN and not key.startswith(GENERATED)


PARSERS = (base_url, choice, database, directory, duration, flag, hosts, number, rate, seconds, secret_keys, time_zone)


def describe_errors(errors: Mapping[str, Iterable[str]]) -> str:
    reasons = [f"{name}: {reason}" for name, reasons in errors.items() for reason in reasons]
    return f"Invalid settings. {' '.join(reasons)}"


def describe_misspelt(names: Iterable[str], *, known: Iterable[str]) -> list[str]:
    """Return a sentence for each unknown name that resembles a known one.

    Names of other programs, such as PORTS or DATABASE_USER, must not match, so short names never do.
    """
    settings = set(known)
    return [
        f"{name} is not a setting. Did you mean {setting}?"
        for name in sorted({*names} - settings)
        for setting in get_close_matches(name, settings, n=1, cutoff=RESEMBLANCE_MIN)
    ]


def read_or_create_secret(path: Path) -> str:
    """Return the secret in a file. If the file does not exist, create it for its owner only."""
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
        pass  # another process was faster: use its secret
    finally:
        draft.unlink()
    return path.read_text()
