"""The parts of a search text: each function returns the meaning of a text that matches a form (search_box.py)."""

import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import date
from typing import NamedTuple
from zoneinfo import ZoneInfo

from payments.admin.payments.search_days import days_of, meaning_of
from payments.listing.filters import day_parameters
from payments.listing.search_terms import AMOUNT, BEGINNING, CARD, WORD, folded, split_words
from payments.models import Status
from payments.models.choices import CURRENCIES
from payments.templatetags.texts import grouped

INTEGER_DIGITS_MAX = 13
BEGINNING_CHARACTERS_MIN = 3

STATUSES = {
    **{status.value: status.value for status in Status},
    **dict.fromkeys(("paid", "successful"), Status.SUCCEEDED.value),
    "declined": Status.FAILED.value,
    "cancelled": Status.CANCELED.value,
}

BRANDS = ("visa", "mastercard", "american express", "amex", "maestro")

# The names of methods differ between providers.
METHODS = {
    **{name: name for name in ("ideal", "paypal", "bancontact", "klarna")},
    **dict.fromkeys(("card", "credit card", "creditcard", "debit card", *BRANDS), "creditcard,card"),
    **dict.fromkeys(("bank transfer", "banktransfer"), "banktransfer"),
    **dict.fromkeys(("direct debit", "directdebit", "sepa"), "directdebit,sepa_debit"),
    **dict.fromkeys(("apple pay", "applepay"), "applepay"),
}

# A dollar is a currency of several countries.
CURRENCY_WORDS = {
    **dict.fromkeys(("€", "EURO", "EUROS"), "EUR"),
    **dict.fromkeys(("£", "POUND", "POUNDS"), "GBP"),
    **dict.fromkeys(("$", "DOLLAR", "DOLLARS"), ""),
}

BOUNDS = {">": ("gt", "More than"), ">=": ("gte", "At least"), "<": ("lt", "Less than"), "<=": ("lte", "At most")}


class InvalidSearch(ValueError):
    """The text cannot be searched for. The message says why."""


class Part(NamedTuple):
    """A part of the text and its meaning: groups of terms, which must all match, and parameters of the API's list."""

    text: str
    meaning: str = ""  # empty: the part is left out
    groups: tuple[str, ...] = ()  # see `search_terms.HasSearchTerms`
    parameters: Mapping[str, str] = {}
    is_text: bool = False  # it is searched for as words, and maybe as others
    beginning: str = ""  # the text for longer words


class Day(NamedTuple):
    """The day on which a text is read."""

    today: date
    zone: ZoneInfo


Reader = Callable[[re.Match[str], Day], Part]


def words_of(text: str) -> Part:
    """Return the words of a text; a part that is left out if there are none."""
    words = split_words(folded(text))
    if not words:
        return Part(text)
    meaning = unicodedata.normalize("NFC", f"“{' '.join(words)}”")
    can_begin = len(words[-1]) >= BEGINNING_CHARACTERS_MIN and re.search("[0-9]", words[-1]) and '"' not in text
    beginning = re.sub(r"\W*\Z", BEGINNING, text) if can_begin else ""
    return Part(text, meaning, tuple(f"{WORD}{word}" for word in words), is_text=True, beginning=beginning)


def read_words(match: re.Match[str], _day: Day) -> Part:
    return words_of(match[0])


def read_beginning(match: re.Match[str], _day: Day) -> Part:
    part = words_of(match[0])
    if len(part.groups[-1]) <= BEGINNING_CHARACTERS_MIN:
        raise InvalidSearch(f"Enter at least {BEGINNING_CHARACTERS_MIN} characters before *.")
    groups = (*part.groups[:-1], part.groups[-1] + BEGINNING)
    return Part(match[0], f"Words that begin with {part.meaning}", groups)


def read_address(match: re.Match[str], _day: Day) -> Part:
    """Read the address of a page of a shop: it is found by the longest of its numbers."""
    numbers = [word for word in split_words(folded(match["path"])) if re.search("[0-9]", word)]
    if not numbers:
        return words_of(match[0])
    number = max(numbers, key=len)
    return Part(match[0], f"“{number}” of the address", (f"{WORD}{number}",))


def read_numbers(match: re.Match[str], _day: Day) -> Part:
    part = words_of(match[0])
    return part._replace(meaning=f"{part.meaning} (an amount needs a currency: {match['numbers']} EUR)")


def read_customer(match: re.Match[str], _day: Day) -> Part:
    return Part(match[0], f"Customer {match['id']}", parameters={"customerId": match["id"]}, is_text=True)


def read_amount(match: re.Match[str], _day: Day) -> Part:
    value, currency = decimal(match["number"]), currency_of(match["before"] or match["after"])
    parameters = {"currency": currency} if currency else {}
    return Part(match[0], f"Amount {grouped(value)} {currency}".rstrip(), (f"{AMOUNT}{value}",), parameters)


def read_integer(match: re.Match[str], _day: Day) -> Part:
    """Read digits: a word, an amount and, if there are four, the end of a card number."""
    digits = match["digits"]
    alternatives = {f"{WORD}{digits}": "the word"}
    if len(digits) <= INTEGER_DIGITS_MAX and (digits == "0" or digits[0] != "0"):
        alternatives[f"{AMOUNT}{digits}.00"] = f"{grouped(digits)}.00"
    is_card = len(digits) == 4  # noqa: PLR2004  the last four digits of a card
    others = [*alternatives.values()][0 if is_card else 1 :]
    if is_card:
        alternatives[f"{CARD}{digits}"] = ""
    meaning = f"Card ending in {digits}" if is_card else f"“{digits}”"
    meaning += f" (or {', or '.join(others)})" if others else ""
    beginning = f"{digits}{BEGINNING}" if len(digits) >= BEGINNING_CHARACTERS_MIN else ""
    return Part(match[0], meaning, (" ".join(alternatives),), is_text=True, beginning=beginning)


def read_days(match: re.Match[str], day: Day) -> Part:
    period = days_of(match, today=day.today)
    if period is None:
        return words_of(match[0])
    parameters = day_parameters("createdAt", period.first, period.last, zone=day.zone)
    return Part(match[0], meaning_of(period), parameters=parameters)


def read_bound(match: re.Match[str], _day: Day) -> Part:
    """Read the lower or the upper bound of the amount, such as `>=100 EUR`."""
    value, currency = decimal(match["number"]), currency_of(match["after"])
    if not currency:
        raise InvalidSearch(f"Enter a currency after the amount, such as {match['sign']}{match['number']} EUR.")
    name, words = BOUNDS[match["sign"]]
    parameters = {f"amount[{name}]": value, "currency": currency}
    return Part(match[0], f"{words} {grouped(value)} {currency}", parameters=parameters)


def read_range(match: re.Match[str], _day: Day) -> Part:
    lower, upper, currency = decimal(match["lower"]), decimal(match["upper"]), currency_of(match["after"])
    parameters = {"amount[gte]": lower, "amount[lte]": upper, "currency": currency}
    return Part(match[0], f"From {grouped(lower)} to {grouped(upper)} {currency}", parameters=parameters)


def read_card(match: re.Match[str], _day: Day) -> Part:
    part = card(match[0], re.sub("[^0-9]", "", match["digits"]))
    has_brand = match.groupdict().get("brand")
    return part._replace(meaning=f"{part.meaning} (of any brand)") if has_brand else part


def read_word(match: re.Match[str], _day: Day) -> Part:
    """Read a word for a status, a method or a currency, or one that is left out."""
    word = " ".join(match["word"].lower().split())
    if word in STATUSES:
        return status(match[0], word)
    if word in METHODS:
        return method(match[0], METHODS[word])
    code = currency_of(word)
    return currency(match[0], code) if code else Part(match[0])


def leave_out(match: re.Match[str], _day: Day) -> Part:
    return Part(match[0])


def refuse_exclusion(match: re.Match[str], _day: Day) -> Part:
    raise InvalidSearch(f"The search cannot exclude words. Remove the minus sign before {match['word']}.")


def read_named(match: re.Match[str], _day: Day) -> Part:
    """Read a named value, such as `status:failed`."""
    name, value = match["name"], match["value"].replace('"', "")
    if not value:
        return words_of(match[0])
    if read := NAMED.get(name.lower()):
        return read(match[0], value)
    return Part(match[0], f"Metadata {name}: {value}", parameters={f"metadata[{name}]": value})


def status(text: str, value: str) -> Part:
    if value.lower() not in STATUSES:
        raise InvalidSearch(f"Enter one of these after status: {', '.join(Status.values)}.")
    return Part(text, f"Status {STATUSES[value.lower()]}", parameters={"status": STATUSES[value.lower()]})


def method(text: str, value: str) -> Part:
    return Part(text, f"Method {value.replace(',', ' or ')}", parameters={"method": value})


def currency(text: str, value: str) -> Part:
    if value.upper() not in CURRENCIES:
        raise InvalidSearch("Enter a code after currency, such as currency:EUR.")
    return Part(text, f"Currency {value.upper()}", parameters={"currency": value.upper()})


def card(text: str, value: str) -> Part:
    if not re.fullmatch(r"[0-9]{4}", value):
        raise InvalidSearch("Enter the last four digits of the card, such as card:4242.")
    return Part(text, f"Card ending in {value}", (f"{CARD}{value}",))


NAMED: Mapping[str, Callable[[str, str], Part]] = {
    "card": card,
    "currency": currency,
    "method": method,
    "status": status,
}


def currency_of(sign: str | None) -> str:
    """Return the code of a currency's sign, word or code; an empty text for a dollar, which several countries have."""
    name = (sign or "").strip().upper()
    return CURRENCY_WORDS.get(name, name)


def decimal(number: str) -> str:
    """Return an amount with a point and two decimal places: `1234.50` for `1.234,5`."""
    decimals = re.search(r"[.,]([0-9]{1,2})\Z", number)
    whole = number[: decimals.start()] if decimals else number
    return f"{re.sub('[.,]', '', whole)}.{(decimals[1] if decimals else '').ljust(2, '0')}"
