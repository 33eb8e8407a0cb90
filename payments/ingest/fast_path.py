"""The usual record, told at a glance.

To find out what is wrong with a record takes many times as long as to see that nothing is. A record as the API itself
writes it, whose texts need no escape, is found right here, and taken apart, by one regular expression; of any other
nothing is said, and `validation` takes a closer look.
"""

import re
from datetime import datetime

import msgspec
from django.db.models import TextChoices

from payments.currencies import CURRENCIES
from payments.ingest.card_data import exposes_card_number, is_sensitive_name
from payments.ingest.columns import StoredRow, stored_time
from payments.models import CUSTOMER_ID, METHOD, PAYMENT_ID, Mode, SequenceType, Status
from payments.record import COUNTRY, TIME, VALUE, encode

read_texts = msgspec.json.Decoder(dict[str, str]).decode


def bare(pattern: str) -> str:
    return pattern.removeprefix(r"\A").removesuffix(r"\Z")


def captured(pattern: str) -> str:
    return f'"({bare(pattern)})"'


def word(choices: type[TextChoices]) -> str:
    return captured(f"(?:{'|'.join(choices.values)})")


def member(name: str, value: str) -> str:
    return f',"{name}":{value}'


def optional(name: str, value: str) -> str:
    return f"(?:{member(name, value)})?"


# Narrower than what is allowed: a shorter URL, in ASCII and without a port or a user; an organization's number of at
# most 18 digits, which fits into 63 bits; a card's number whose middle is all hidden.
ANYTHING = r'[^"\\\x00-\x1f]*+'
MONEY = rf'\{{"value":"((?!-0\.00){bare(VALUE)})","currency":"([A-Z]{{3}})"\}}'
URL = r"https?://[A-Za-z0-9.-]{1,253}+(?:[/?#][!#-\[\]-~]{0,1700}+)?+"
ORGANIZATION_ID = r"[1-9][0-9]{0,17}"
TEXTS = rf'\{{(?:"{ANYTHING}":"{ANYTHING}"(?:,"{ANYTHING}":"{ANYTHING}")*+)?+\}}'
CARD_NUMBER = r"[0-9X]{4} [0-9X]{2}XX (?:XXXX [0-9X]{4}|XXX[0-9X] [0-9X]{3})"
WITHOUT_DIGIT = r"[ !#-/:-\[\]-~]*+"
CARD = (
    rf'\{{"cardCountryCode":"{bare(COUNTRY)}","cardHolder":"{WITHOUT_DIGIT}","cardLabel":"{WITHOUT_DIGIT}"'
    rf',"cardNumber":"{CARD_NUMBER}"\}}'
)
LINK = rf'\{{"href":"{ANYTHING}","type":"{ANYTHING}"\}}'

# A record, its members in the contract's order. Each group is a column, but details are one of two.
is_usual = re.compile(
    rf'\{{"id":{captured(PAYMENT_ID)}'
    + member("resource", '"payment"')
    + member("mode", word(Mode))
    + member("amount", MONEY)
    + optional("amountNet", MONEY)
    + optional("amountRemaining", MONEY)
    + member("description", captured(ANYTHING))
    + optional("method", captured(METHOD))
    + optional("redirectUrl", captured(URL))
    + optional("webhookUrl", captured(URL))
    + member("status", word(Status))
    + member("organizationId", captured(ORGANIZATION_ID))
    + member("sequenceType", word(SequenceType))
    + member("metadata", f"({TEXTS})")
    + optional("details", f"(?:({CARD})|({TEXTS}))")
    + member("createdAt", captured(TIME))
    + optional("expiresAt", captured(TIME))
    + optional("paidAt", captured(TIME))
    + optional("customerId", captured(CUSTOMER_ID))
    + optional("_links", rf'\{{"self":{LINK},"dashboard":{LINK},"documentation":{LINK}\}}')
    + r"\}"
).fullmatch

is_country = re.compile(bare(COUNTRY)).fullmatch
is_masked = re.compile(CARD_NUMBER).fullmatch


def usual(json: bytes) -> StoredRow | None:
    """Return the row of the record that `json` holds, where all is right with it."""
    try:
        found = is_usual(json.decode())
    except UnicodeDecodeError:
        return None
    return usual_row(*found.groups()) if found else None


def usual_row(  # noqa: PLR0913, PLR0917  the groups of the regular expression
    payment_id: str,
    mode: str,
    amount: str,
    currency: str,
    net: str | None,
    net_currency: str | None,
    remaining: str | None,
    remaining_currency: str | None,
    description: str,
    method: str | None,
    redirect_url: str | None,
    webhook_url: str | None,
    status: str,
    organization_id: str,
    sequence_type: str,
    metadata: str,
    card: str | None,
    details: str | None,
    created_at: str,
    expires_at: str | None,
    paid_at: str | None,
    customer_id: str | None,
) -> StoredRow | None:
    """Return the row, where what the form of its texts does not tell is right, too."""
    is_right = (
        currency in CURRENCIES
        and (net is None or net_currency in CURRENCIES)
        and (remaining is None or remaining_currency in CURRENCIES)
        and (paid_at is not None or status != Status.SUCCEEDED)
        # Only where there is a second name can one be there twice.
        and ('","' not in metadata or single_named(metadata) is not None)
        and (details is None or are_harmless(single_named(details)))
        and are_on_the_calendar(created_at, expires_at, paid_at)
    )
    if not is_right:
        return None
    return StoredRow(
        payment_id,
        mode,
        amount,
        currency,
        net,
        net_currency,
        remaining,
        remaining_currency,
        description,
        method or "",
        redirect_url or "",
        webhook_url or "",
        status,
        int(organization_id),
        sequence_type,
        metadata,
        card or details,
        stored_time(created_at),
        expires_at and stored_time(expires_at),
        paid_at and stored_time(paid_at),
        customer_id or "",
    )


def are_on_the_calendar(*times: str | None) -> bool:
    try:
        for time in times:
            if time:
                datetime.fromisoformat(time)
    except ValueError:
        return False
    return True


def single_named(texts: str) -> dict[str, str] | None:
    """Return an object's texts by their names, where no name is there twice."""
    found = read_texts(texts)
    return found if encode(found).decode() == texts else None


def are_harmless(details: dict[str, str] | None) -> bool:
    """Tell whether none of a payment's details shows what must not be stored."""
    return details is not None and all(is_harmless(name, text) for name, text in details.items())


def is_harmless(name: str, text: str) -> bool:
    if name == "cardNumber":
        return is_masked(text) is not None
    if name == "cardCountryCode":
        return is_country(text) is not None
    return not (exposes_card_number(text) or exposes_card_number(name) or is_sensitive_name(name))
