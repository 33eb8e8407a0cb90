"""The usual record, told at a glance.

To find out what is wrong with a record takes three times as long as to see that nothing is. A record as the API itself
writes it is seen to be right here; of any other nothing is said, and `checking` takes a closer look.
"""

import re
from datetime import datetime

import msgspec
from msgspec import UNSET, Raw, UnsetType, field

from payments.currencies import CURRENCIES
from payments.ingest.card_data import is_secret, shows_card_number
from payments.models import CUSTOMER_ID, METHOD, PAYMENT_ID, Status
from payments.records import COUNTRY, TIME, VALUE, GivenRecord, Money, Record, RecordLinks, encode


class PlainMoney(Money, frozen=True, gc=False, forbid_unknown_fields=True):
    """An amount whose texts nobody has looked at."""

    value: str
    currency: str


class PlainRecord(GivenRecord, kw_only=True, frozen=True, gc=False, forbid_unknown_fields=True):
    """A record whose texts nobody has looked at."""

    id: str
    resource: str = "payment"
    amount: PlainMoney
    amount_net: PlainMoney | UnsetType = UNSET
    amount_remaining: PlainMoney | UnsetType = UNSET
    method: str | UnsetType = UNSET
    redirect_url: str | UnsetType = UNSET
    webhook_url: str | UnsetType = UNSET
    organization_id: str
    created_at: str
    expires_at: str | UnsetType = UNSET
    paid_at: str | UnsetType = UNSET
    customer_id: str | UnsetType = UNSET
    links: RecordLinks | UnsetType = field(default=UNSET, name="_links")


read_plain = msgspec.json.Decoder(PlainRecord).decode
read_texts = msgspec.json.Decoder(dict[str, str]).decode

# What stands for a text that is not there; JSON without a backslash holds no such character, nor a line break.
NONE = "\0"


def bare(pattern: str) -> str:
    return pattern.removeprefix(r"\A").removesuffix(r"\Z")


def optional(pattern: str) -> str:
    return f"(?:{NONE}|{pattern})"


# Narrower than what is allowed: a URL without a port or a user, an organization's number of at most 18 digits, which
# fits into 63 bits, a card's number whose middle is all hidden.
MONEY = rf"(?!-0\.00){bare(VALUE)}"
URL = r"https?://[A-Za-z0-9.-]{1,253}(?:[/?#][!-~]{0,1700})?"
ORGANIZATION_ID = r"[1-9][0-9]{0,17}"
CARD_NUMBER = r"[0-9X]{4} [0-9X]{2}XX (?:XXXX [0-9X]{4}|XXX[0-9X] [0-9X]{3})"

# The texts of a record, each on a line.
are_right = re.compile(
    "\n".join(
        (
            bare(PAYMENT_ID),
            MONEY,
            *[optional(MONEY)] * 2,
            optional(bare(METHOD)),
            *[optional(URL)] * 2,
            ORGANIZATION_ID,
            bare(TIME),
            *[optional(bare(TIME))] * 2,
            optional(bare(CUSTOMER_ID)),
        )
    )
).fullmatch

is_country = re.compile(bare(COUNTRY)).fullmatch
is_masked = re.compile(CARD_NUMBER).fullmatch

# A card's details, their texts without a digit but for the number.
are_of_card = re.compile(
    rf'{{"cardCountryCode":"{bare(COUNTRY)}","cardHolder":"[ !#-/:-~]*","cardLabel":"[ !#-/:-~]*",'
    rf'"cardNumber":"{CARD_NUMBER}"}}'.encode()
).fullmatch


def usual(text: bytes) -> Record | None:
    """Return the record that `text` holds where all is right with it, and written as it would be written out."""
    if b"\\" in text:
        return None
    try:
        if not text.isascii():
            text.decode()
        record = read_plain(text)
        # What is written as it was read has no key twice.
        return record if encode(record) == text and is_usual(record) else None
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def is_usual(record: Record) -> bool:
    """Tell whether its texts are right.

    :raises ValueError: where a time is no day of the calendar, or its details are no texts
    """
    amount, net, remaining = record.amount, record.amount_net, record.amount_remaining
    created_at, expires_at, paid_at = record.created_at, record.expires_at, record.paid_at
    datetime.fromisoformat(created_at)
    if expires_at is not UNSET:
        datetime.fromisoformat(expires_at)
    if paid_at is not UNSET:
        datetime.fromisoformat(paid_at)
    elif record.status == Status.SUCCEEDED:
        return False
    return (
        amount.currency in CURRENCIES
        and (net is UNSET or net.currency in CURRENCIES)
        and (remaining is UNSET or remaining.currency in CURRENCIES)
        and are_right(
            f"{record.id}\n{amount.value}\n{NONE if net is UNSET else net.value}\n"
            f"{NONE if remaining is UNSET else remaining.value}\n{NONE if record.method is UNSET else record.method}\n"
            f"{NONE if record.redirect_url is UNSET else record.redirect_url}\n"
            f"{NONE if record.webhook_url is UNSET else record.webhook_url}\n"
            f"{record.organization_id}\n{created_at}\n{NONE if expires_at is UNSET else expires_at}\n"
            f"{NONE if paid_at is UNSET else paid_at}\n{NONE if record.customer_id is UNSET else record.customer_id}"
        )
        is not None
        and (record.details is UNSET or are_usual(record.details))
    )


def are_usual(details: Raw) -> bool:
    """Tell whether details are a few texts, none of which shows what must not be stored.

    :raises msgspec.ValidationError: where they are something else
    """
    if are_of_card(details):
        return True
    found = read_texts(details)
    return encode(found) == bytes(details) and all(is_harmless(name, text) for name, text in found.items())


def is_harmless(name: str, text: str) -> bool:
    if name == "cardNumber":
        return is_masked(text) is not None
    if name == "cardCountryCode":
        return is_country(text) is not None
    return not (shows_card_number(text) or shows_card_number(name) or is_secret(name))
