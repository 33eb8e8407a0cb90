"""Validates records: their form, then the rules that a form cannot express."""

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Raw

from payments.currencies import CURRENCIES
from payments.ingest.card_data import CARD_NUMBER, Path, exposes_card_number, find_card_data, has_clear_card_number
from payments.ingest.card_numbers import exposes_middle
from payments.ingest.decoder_messages import ErrorKind, parse_message
from payments.models import ORGANIZATION_ID_MAX, Status
from payments.record import Details, ImportedRecord, Money, Record, Time, Url, rules
from payments.rows import FIELDS, StoredField

# Messages contain at most this many characters of a field's name.
NAME_CHARACTERS_MAX = 80

# The API's responses add three levels around a record, and some clients read at most 64 levels (.NET).
NESTING_MAX = 60

RULES = rules()

decode_record = msgspec.json.Decoder(ImportedRecord).decode
decode_details = msgspec.json.Decoder(Details).decode


class InvalidRecord(Exception):
    """A record is invalid: the field and the reason. The field is None if the record as a whole is invalid."""

    def __init__(self, field: str | None, reason: str) -> None:
        self.field = printable_name(field) if field else None
        self.reason = reason
        super().__init__(f"{self.field}: {reason}" if self.field else reason)


def printable_name(field: str) -> str:
    """Return a field's name as a message may repeat it. Within `details`, a name may be any text."""
    if exposes_card_number(field):
        return "a name that contains a card number"
    return field if len(field) <= NAME_CHARACTERS_MAX else f"{field[:NAME_CHARACTERS_MAX]}…"


def fields_of_type(type_: Any) -> list[StoredField]:
    return [field for field in FIELDS if field.type == type_]


MONEY_FIELDS = fields_of_type(Money)
URL_FIELDS = fields_of_type(Url)
TIME_FIELDS = fields_of_type(Time)


def validate_record(text: bytes, *, trusts_texts: bool = False) -> Record:
    """Return the record in `text`, its details without spaces between their parts.

    With `trusts_texts`, numbers that look like card numbers are accepted outside of the details.

    :raises InvalidRecord: with the first error; it does not repeat card data
    """
    record = validate_form(text)
    refuse_invalid_values((), parse_json(text))
    for name, money in values_of(record, MONEY_FIELDS):
        check_money(name, money)
    for name, url in values_of(record, URL_FIELDS):
        check_url(name, url)
    for name, time in values_of(record, TIME_FIELDS):
        check_time(name, time)
    for name, free_text in () if trusts_texts else free_texts(record):
        if has_clear_card_number(free_text):
            raise InvalidRecord(name, CARD_NUMBER)
    details = UNSET if record.details is UNSET else validate_details(bytes(record.details))
    if record.status == Status.SUCCEEDED and record.paid_at is UNSET:
        raise InvalidRecord("paidAt", "is missing: a payment that succeeded must have it")
    if int(record.organization_id) > ORGANIZATION_ID_MAX:
        raise InvalidRecord("organizationId", f"must be at most {ORGANIZATION_ID_MAX}")
    return msgspec.structs.replace(record, details=details)


def validate_form(text: bytes) -> ImportedRecord:
    try:
        if not text.isascii():
            text.decode()  # msgspec does not decode the details
        return decode_record(text)
    except msgspec.ValidationError as error:
        raise explain(error) from None
    except UnicodeDecodeError as error:
        raise InvalidRecord(None, f"is not UTF-8 (byte {error.start})") from None
    except msgspec.DecodeError as error:
        raise InvalidRecord(None, f"is not JSON: {error}") from None
    except RecursionError:
        raise InvalidRecord(None, "is nested too deeply") from None


def explain(error: msgspec.ValidationError, *, within: str = "") -> InvalidRecord:
    """Return a msgspec error in the record's terms. `within` is the path of the object that was decoded."""
    kind, path, text = parse_message(error)
    path = ".".join(filter(None, (within, path)))
    match kind:
        case ErrorKind.MISSING:
            reason = "is missing"
        case ErrorKind.UNKNOWN:
            reason = "is not a field of a record"
        case ErrorKind.NULL:
            reason = "must not be null: leave out a field without a value"
        case ErrorKind.OTHER:  # the text repeats the value of an enumeration, but those fields have a rule
            reason = RULES.get(path, text[0].lower() + text[1:])
    return InvalidRecord(path or None, reason)


def values_of(record: Record, fields: list[StoredField]) -> Iterator[tuple[str, Any]]:
    """Yield the name and the value of the fields that have a value."""
    for field in fields:
        value = getattr(record, field.name)
        if value is not UNSET:
            yield field.json_name, value


def check_money(name: str, money: Money) -> None:
    """Check the amount of a field.

    :raises InvalidRecord: unknown currency, or a negative zero
    """
    if money.currency not in CURRENCIES:
        raise InvalidRecord(f"{name}.currency", RULES[f"{name}.currency"])
    if money.value == "-0.00":
        raise InvalidRecord(f"{name}.value", "must be written 0.00")


def check_url(name: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        is_usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise InvalidRecord(name, RULES[name])


def check_time(name: str, time: str) -> None:
    try:
        datetime.fromisoformat(time)
    except ValueError:
        raise InvalidRecord(name, "is not a day of the calendar") from None


def validate_details(json_text: bytes) -> Raw:
    """Return the details without spaces between their parts.

    :raises InvalidRecord: if a card's field is invalid, or if the details contain card data that must not be stored
    """
    try:
        card = decode_details(json_text)
    except msgspec.ValidationError as error:
        raise explain(error, within="details") from None
    if card.card_number is not UNSET and exposes_middle(card.card_number.replace(" ", "")):
        raise InvalidRecord("details.cardNumber", RULES["details.cardNumber"])
    for path, reason in find_card_data(parse_json(json_text), ("details",)):
        raise InvalidRecord(join(path), reason)
    return Raw(msgspec.json.format(json_text, indent=-1))


def free_texts(record: ImportedRecord) -> Iterator[tuple[str, str]]:
    """Yield the names and the texts of the fields in which a merchant may write any text."""
    yield "description", record.description
    yield from values_of(record, URL_FIELDS)
    for name, text in record.metadata.items():
        yield "metadata", name
        yield f"metadata.{name}", text


def refuse_invalid_values(path: Path, value: Any, *, depth: int = 1) -> None:
    """Refuse valid JSON that some programs cannot read: deep nesting, duplicate names, large numbers and NUL."""
    if depth > NESTING_MAX and isinstance(value, dict | list):
        raise InvalidRecord(None, "is nested too deeply")
    if isinstance(value, InvalidValue):
        raise InvalidRecord(join(path), value.reason)
    if isinstance(value, dict):
        for name, inner in value.items():
            refuse_invalid_values((*path, name), name, depth=depth)
            refuse_invalid_values((*path, name), inner, depth=depth + 1)
    elif isinstance(value, list):
        for inner in value:
            refuse_invalid_values(path, inner, depth=depth + 1)
    elif isinstance(value, str) and "\0" in value:
        raise InvalidRecord(join(path).replace("\0", ""), "must not contain the character NUL")


def join(path: Path) -> str:
    return ".".join(path)


@dataclass(frozen=True)
class InvalidValue:
    """Stands for an invalid value in parsed JSON. The parser cannot report it, because it does not know the path."""

    reason: str


DUPLICATE_NAME = InvalidValue("occurs more than once")
TOO_LARGE = InvalidValue("is a number that is too large")


def parse_json(text: bytes) -> Any:
    """Return the value in `text`, numbers as their text. Duplicate names and infinite numbers are an `InvalidValue`."""
    try:
        return json.loads(
            text.decode(), object_pairs_hook=mark_duplicates, parse_int=mark_infinite, parse_float=mark_infinite
        )
    except RecursionError:
        raise InvalidRecord(None, "is nested too deeply") from None


def mark_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object with `DUPLICATE_NAME` as the value of names that occur more than once."""
    members = dict(pairs)
    if len(members) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        members.update((name, DUPLICATE_NAME) for name, count in counts.items() if count > 1)
    return members


def mark_infinite(number: str) -> str | InvalidValue:
    """Return a number's text, or `TOO_LARGE` if it is infinite as a floating-point number."""
    return TOO_LARGE if math.isinf(float(number)) else number
