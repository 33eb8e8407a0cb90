"""Validates records: the form of their members, then the rules that a form cannot express."""

import re
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw

from payments.ingest.cards.details import MUST_BE_MASKED, find_card_data, has_clear_card_number
from payments.ingest.cards.numbers import in_groups
from payments.ingest.errors import FieldError, InvalidRecord
from payments.ingest.json_values import NESTED_TOO_DEEPLY, find_invalid_values, find_long_texts, join, parse_json
from payments.ingest.members import Findings, decode_object, read_record, rule_of
from payments.ingest.translations import Translations
from payments.models import ORGANIZATION_ID_MAX, RECORD_BYTES_MAX, TEXT_BYTES_MAX, Status
from payments.models.choices import CURRENCIES
from payments.record import (
    FREE_TEXT_TYPES,
    NAME_BYTES_MAX,
    SCRIPT_SCHEMES,
    TIME,
    URL_TYPES,
    CardNumber,
    Currency,
    Money,
    Record,
    Time,
    encode,
    parse_instant,
    record_time,
)
from payments.rows import FIELDS, StoredField


class Options(NamedTuple):
    """What an import accepts beyond the contract.

    `trusts_texts` accepts numbers that look like card numbers outside of the details, `not_cards` in these members of
    them. `ignores_unknown_fields` skips unknown members. `translations` apply before the validation.
    """

    trusts_texts: bool = False
    ignores_unknown_fields: bool = False
    translations: Translations = {}
    not_cards: Collection[str] = frozenset()


STRICT = Options()

is_record_time = re.compile(TIME).match

UTF_8_BYTES_MAX = 4  # of a character


class ValidRecord(NamedTuple):
    """A record, how many of its members were skipped, and how many have numbers that look like card numbers."""

    record: Record
    ignored: int
    not_cards: int


def fields_of_type(*types: Any) -> list[StoredField]:
    return [field for field in FIELDS if field.type in types]


MONEY_FIELDS = fields_of_type(Money)
URL_FIELDS = fields_of_type(*URL_TYPES)
FREE_TEXT_FIELDS = fields_of_type(*FREE_TEXT_TYPES)
TIME_FIELDS = fields_of_type(Time)
STORED_NAMES = [field.json_name for field in FIELDS]

RECORD_TOO_LONG = InvalidRecord.of(None, f"is longer than {RECORD_BYTES_MAX} bytes in the form of an export")


def validate_record(text: bytes, options: Options = STRICT) -> ValidRecord:
    """Return the record in `text`: its times in UTC, its details without spaces between their parts.

    :raises InvalidRecord: with all errors; they do not repeat card data
    """
    findings = Findings()
    values = read_json(text, findings)
    findings.add_all(find_invalid_values(text))
    if not options.ignores_unknown_fields:
        for name in findings.unknown:
            findings.add(name, "is not a field of a record; --ignore-unknown-fields skips it")
    findings.add_all(rule_errors(values, findings, options))
    if findings.reasons or (len(text) > NAME_BYTES_MAX and may_have_long_texts(text, values)):
        document = parse_json(text)
        for name in STORED_NAMES:
            findings.add_all(find_long_texts((name,), document.get(name)))
    if findings.reasons:
        raise InvalidRecord(findings.errors)
    record = Record(**values)
    if len(text) > TEXT_BYTES_MAX and len(encode(record)) > RECORD_BYTES_MAX:  # the import adds few characters
        raise RECORD_TOO_LONG
    return ValidRecord(record, ignored=len(findings.unknown), not_cards=findings.not_cards)


def may_have_long_texts(text: bytes, values: dict[str, Any]) -> bool:
    """Return whether a valid record may have a text or a name that is too long. This is fast."""
    characters = max(map(len, values["metadata"]), default=0)
    details = bytes(values.get("details", b""))
    return len(text) > TEXT_BYTES_MAX or characters * UTF_8_BYTES_MAX > NAME_BYTES_MAX or len(details) > NAME_BYTES_MAX


def read_json(text: bytes, findings: Findings) -> dict[str, Any]:
    """Return the valid values of the record in `text`.

    :raises InvalidRecord: the text is not an object in JSON
    """
    try:
        if not text.isascii():
            text.decode()  # msgspec does not decode all values
        return read_record(text, findings)
    except msgspec.ValidationError:
        raise InvalidRecord.of(None, "is not an object in JSON") from None
    except UnicodeDecodeError as error:
        raise InvalidRecord.of(None, f"is not UTF-8 (byte {error.start})") from None
    except msgspec.DecodeError as error:
        raise InvalidRecord.of(None, f"is not JSON: {error}") from None
    except RecursionError:
        raise InvalidRecord.of(None, NESTED_TOO_DEEPLY) from None


def rule_errors(values: dict[str, Any], findings: Findings, options: Options) -> Iterator[FieldError]:
    """Yield the errors of members whose form is valid. Convert times and details to their stored form."""
    for field in MONEY_FIELDS:
        if field.name in values:
            yield from money_errors(field.json_name, values[field.name])
    for field in URL_FIELDS:
        if field.name in values and not is_usable_url(values[field.name]):
            yield FieldError(field.json_name, rule_of(field.type))
    yield from convert_times(values)
    yield from convert_details(values, findings, options.not_cards)
    for name, text in () if options.trusts_texts else free_texts(values):
        if has_clear_card_number(text):
            yield FieldError(name, f"{MUST_BE_MASKED}; --trust-texts accepts other numbers")
    if values.get("status") == Status.SUCCEEDED and "paid_at" not in values:
        yield FieldError("paidAt", "is missing: a payment that succeeded must have it")
    if int(values.get("organization_id", 1)) > ORGANIZATION_ID_MAX:
        yield FieldError("organizationId", f"must be at most {ORGANIZATION_ID_MAX}")


def money_errors(name: str, money: Money) -> Iterator[FieldError]:
    if money.currency not in CURRENCIES:
        yield FieldError(f"{name}.currency", rule_of(Currency))
    if money.value == "-0.00":
        yield FieldError(f"{name}.value", "must be written 0.00")


def is_usable_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        is_web = parts.scheme in {"http", "https"}
        return parts.scheme not in SCRIPT_SCHEMES and (not is_web or (bool(parts.hostname) and parts.port != 0))
    except ValueError:
        return False


def convert_times(values: dict[str, Any]) -> Iterator[FieldError]:
    """Convert the times of a record to UTC, and yield the errors of those that are none."""
    for field in TIME_FIELDS:
        if field.name not in values:
            continue
        text = values[field.name]
        try:
            if is_record_time(text):  # no conversion, which would take a fifth of the whole validation
                datetime.fromisoformat(text)
                continue
            moment, digits = parse_instant(text)
        except ValueError:
            yield FieldError(field.json_name, "is not a day of the calendar")
        except OverflowError:
            yield FieldError(field.json_name, "is outside of the years 1 to 9999")
        else:
            values[field.name] = record_time(moment)
            if digits or moment.microsecond % 1000:
                yield FieldError(field.json_name, "has more than three fractional digits: a digit would be lost")


def convert_details(values: dict[str, Any], findings: Findings, not_cards: Collection[str]) -> Iterator[FieldError]:
    """Remove the spaces between the parts of the details, write a mask as the API does, and yield the card data."""
    if "details" not in values:
        return
    text = bytes(values["details"])
    document = parse_json(text)
    number = document.get("cardNumber")
    if isinstance(number, str):
        if (masked := in_groups(number)) is None:
            yield FieldError("details.cardNumber", rule_of(CardNumber))
        elif masked != number:
            text = encode({**decode_object(text), "cardNumber": masked})
            document["cardNumber"] = masked
    found = list(find_card_data(document, ("details",)))
    if found and not_cards:
        findings.not_cards = len(found)
        found = list(find_card_data(document, ("details",), not_cards))
    for path, reason in found:
        yield FieldError(join(path), reason)
    values["details"] = Raw(msgspec.json.format(text, indent=-1))


def free_texts(values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the names and the texts of the members in which a merchant may write any text."""
    for field in FREE_TEXT_FIELDS:
        yield field.json_name, values.get(field.name, "")
    for name, text in values.get("metadata", {}).items():
        yield "metadata", name
        yield f"metadata.{name}", text
