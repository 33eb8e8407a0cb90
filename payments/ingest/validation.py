"""A record's text, checked: its form, then what no form can say."""

import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Raw, UnsetType

from payments.currencies import CURRENCIES
from payments.ingest.card_data import exposes_card_number, exposes_middle, is_sensitive_name
from payments.models import ORGANIZATION_ID_MAX, Status
from payments.record import Details, GivenRecord, Money, Record, rules

FIELD_CHARACTERS_MAX = 80

# A page is three levels around a record, and some clients read no more than 64 (.NET).
NESTING_MAX = 60

RULES = rules()

# What a field holds that holds no secret, whatever its name; a flag tells that there was one.
NOTHING: tuple[Any, ...] = (None, "", [], {}, False, True)

# What msgspec says, and where; what it has found there may be repeated in it.
SAID = re.compile(r"\A(.*?)(?: - at `\$([\w.\[\]]*)`)?\Z", re.DOTALL)
NAMED = re.compile(r"Object (missing required|contains unknown) field `(.*?)`?", re.DOTALL)

read_record = msgspec.json.Decoder(GivenRecord).decode
read_details = msgspec.json.Decoder(Details).decode


class InvalidRecord(Exception):
    """What is wrong with a record, and in which of its fields (None: in the text as a whole)."""

    def __init__(self, field: str | None, reason: str) -> None:
        self.field = repeatable(field) if field else None
        self.reason = reason
        super().__init__(f"{self.field}: {reason}" if self.field else reason)


def checked(text: bytes) -> Record:
    """Return the record that `text` holds, its details without spaces between their parts.

    :raises InvalidRecord: naming its first fault; a card number or security code is not repeated
    """
    record = well_formed(text)
    refuse_unsound((), parsed(text))
    check_money("amount", record.amount)
    check_money("amountNet", record.amount_net)
    check_money("amountRemaining", record.amount_remaining)
    check_url("redirectUrl", record.redirect_url)
    check_url("webhookUrl", record.webhook_url)
    check_time("createdAt", record.created_at)
    check_time("expiresAt", record.expires_at)
    check_time("paidAt", record.paid_at)
    details = checked_details(record.details)
    if record.status == Status.SUCCEEDED and record.paid_at is UNSET:
        raise InvalidRecord("paidAt", "is missing: a payment that succeeded has one")
    if int(record.organization_id) > ORGANIZATION_ID_MAX:
        raise InvalidRecord("organizationId", f"must be at most {ORGANIZATION_ID_MAX}")
    return msgspec.structs.replace(record, details=details)


def repeatable(field: str) -> str:
    """Return `field` as a message may repeat it: the names within `details` are the sender's, and may be anything."""
    if exposes_card_number(field):
        return "a name that shows a card number"
    return field if len(field) <= FIELD_CHARACTERS_MAX else f"{field[:FIELD_CHARACTERS_MAX]}…"


def well_formed(text: bytes) -> GivenRecord:
    try:
        if not text.isascii():
            text.decode()
        return read_record(text)
    except msgspec.ValidationError as error:
        raise misfit(error) from None
    except UnicodeDecodeError as error:
        raise InvalidRecord(None, f"is not UTF-8 (byte {error.start})") from None
    except msgspec.DecodeError as error:
        raise InvalidRecord(None, f"is not JSON: {error}") from None
    except RecursionError:
        raise InvalidRecord(None, "is nested too deeply") from None


def misfit(error: msgspec.ValidationError, *, within: str = "") -> InvalidRecord:
    """Say in the record's own terms what msgspec found in the object `within`."""
    found, path = SAID.findall(str(error))[0]
    path = f"{within}{path.replace('[...]', '')}".removeprefix(".")
    if key := NAMED.fullmatch(found):
        field = f"{path}.{key[2]}".removeprefix(".")
        return InvalidRecord(field, "is missing" if key[1] == "missing required" else "is no field of a record")
    if found.endswith("got `null`"):
        return InvalidRecord(path, "must not be null: what has no value is left out")
    return InvalidRecord(path or None, RULES.get(path, found[0].lower() + found[1:]))


def check_money(field: str, money: Money | UnsetType) -> None:
    if money is UNSET:
        return
    if money.currency not in CURRENCIES:
        raise InvalidRecord(f"{field}.currency", RULES["amount.currency"])
    if money.value == "-0.00":
        raise InvalidRecord(f"{field}.value", "must be written 0.00")


def check_url(field: str, url: str | UnsetType) -> None:
    if url is UNSET:
        return
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise InvalidRecord(field, RULES[field])


def check_time(field: str, time: str | UnsetType) -> None:
    if time is UNSET:
        return
    try:
        datetime.fromisoformat(time)
    except ValueError:
        raise InvalidRecord(field, "is no day of the calendar") from None


def checked_details(details: Raw | UnsetType) -> Raw | UnsetType:
    """Check what is known of a card's details, and that nothing in them shows what must not be stored."""
    if details is UNSET:
        return UNSET
    try:
        card = read_details(details)
    except msgspec.ValidationError as error:
        raise misfit(error, within="details") from None
    if card.card_number is not UNSET and exposes_middle(card.card_number.replace(" ", "")):
        raise InvalidRecord("details.cardNumber", RULES["details.cardNumber"])
    refuse_card_data(("details",), parsed(bytes(details)))
    return Raw(msgspec.json.format(bytes(details), indent=-1))


def refuse_card_data(path: tuple[str, ...], value: Any) -> None:
    if isinstance(value, dict):
        for name, inner in value.items():
            refuse_card_data(path, name)
            if is_sensitive_name(name) and inner not in NOTHING:
                raise InvalidRecord(
                    joined(*path, name), "a security code, PIN or track must not be stored (PCI DSS 3.3)"
                )
            refuse_card_data((*path, name), inner)
    elif isinstance(value, list):
        for inner in value:
            refuse_card_data(path, inner)
    elif isinstance(value, str) and exposes_card_number(value):
        raise InvalidRecord(joined(*path), "a card number must be masked (PCI DSS 3.4)")


def refuse_unsound(path: tuple[str, ...], value: Any, *, depth: int = 1) -> None:
    """Refuse what JSON allows, and `parsed` has marked, but not every program takes."""
    if depth > NESTING_MAX and isinstance(value, dict | list):
        raise InvalidRecord(None, "is nested too deeply")
    if isinstance(value, Unsound):
        raise InvalidRecord(joined(*path), value.reason)
    if isinstance(value, dict):
        for name, inner in value.items():
            refuse_unsound((*path, name), name, depth=depth)
            refuse_unsound((*path, name), inner, depth=depth + 1)
    elif isinstance(value, list):
        for inner in value:
            refuse_unsound(path, inner, depth=depth + 1)
    elif isinstance(value, str) and "\0" in value:
        raise InvalidRecord(joined(*path).replace("\0", ""), "must not hold the character NUL")


def joined(*names: str) -> str:
    return ".".join(names)


@dataclass(frozen=True)
class Unsound:
    """Stands in place of a value; what is wrong with it."""

    reason: str


TWICE = Unsound("is there twice")
TOO_LARGE = Unsound("is a number that is too large")


def parsed(text: bytes) -> Any:
    """Return what `text` holds, numbers as their text.

    What an object has twice, or is a number beyond what programs can compute with, is `Unsound`.
    """
    try:
        return json.loads(text.decode(), object_pairs_hook=with_single_keys, parse_int=finite, parse_float=finite)
    except RecursionError:
        raise InvalidRecord(None, "is nested too deeply") from None


def with_single_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        found.update((name, TWICE) for name, count in counts.items() if count > 1)
    return found


def finite(number: str) -> str | Unsound:
    return TOO_LARGE if math.isinf(float(number)) else number
