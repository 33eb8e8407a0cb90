"""The search box: reads its text as IDs, words, amounts, the last four digits of a card, dates and named values.

Each part of the text restricts the search further. If a part can mean several things, any of them may match: `4242` is
a word, an amount and the end of a card number. Text in quotation marks is only words. A named value is a metadata pair,
such as `order:84820`, or has one of the names of `NAMED`, such as `status:failed`. The address of a payment is read as
its ID.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from zoneinfo import ZoneInfo

from django.contrib.admin.utils import unquote
from django.core.exceptions import ValidationError

from payments.admin.forms import check_year
from payments.listing.filters import day_parameters
from payments.listing.search_terms import AMOUNT, CARD, WORD, folded, split_words
from payments.models import CUSTOMER_ID, PAYMENT_ID, Status
from payments.models.choices import CURRENCIES
from payments.models.days import last_of_month
from payments.templatetags.texts import grouped

NOUNS = {
    "currency": "currency",
    "customerId": "customer",
    "createdAt[gte]": "date",
    "createdAt[lt]": "date",
    "status": "status",
    "method": "method",
    **dict.fromkeys(("amount[gt]", "amount[gte]"), "lower bound of the amount"),
    **dict.fromkeys(("amount[lt]", "amount[lte]"), "upper bound of the amount"),
}


class InvalidSearch(ValueError):
    """The text cannot be searched for. The message says why."""


@dataclass
class Search:
    """The meaning of a text: groups of terms, which must all match, and parameters of the API's list."""

    today: date
    zone: ZoneInfo
    groups: list[str] = field(default_factory=list)  # see `search_terms.HasSearchTerms`
    parameters: dict[str, str] = field(default_factory=dict)
    meanings: list[str] = field(default_factory=list)  # of the parts of the text, for the page
    payment_id: str = ""
    has_alternative: bool = False  # a part of the text is not searched for as words

    @property
    def meaning(self) -> str:
        return ", and ".join(self.meanings)

    def add_meaning(self, meaning: str) -> None:
        """Add the meaning of a part that is not searched for as words."""
        self.meanings.append(meaning)
        self.has_alternative = True

    def add_parameter(self, name: str, value: str) -> None:
        if self.parameters.setdefault(name, value) != value:
            raise InvalidSearch(f"Enter only one {NOUNS.get(name, 'value of each metadata key')}.")


def add_pair(search: Search, key: str, value: str) -> None:
    search.add_parameter(f"metadata[{key}]", value)
    search.add_meaning(f"the metadata {key}={value}")


def add_status(search: Search, text: str) -> None:
    if text.lower() not in Status.values:
        raise InvalidSearch(f"Enter one of these after status: {', '.join(Status.values)}.")
    search.add_parameter("status", text.lower())
    search.add_meaning(f"the status {text.lower()}")


def add_method(search: Search, text: str) -> None:
    search.add_parameter("method", text)
    search.add_meaning(f"the method {text}")


def add_card(search: Search, text: str) -> None:
    if not re.fullmatch(r"[0-9]{4}", text):
        raise InvalidSearch("Enter the last four digits of the card, such as card:4242.")
    search.groups.append(f"{CARD}{text}")
    search.add_meaning(f"a card number that ends in {text}")


NAMED: Mapping[str, Callable[[Search, str], None]] = {"card": add_card, "method": add_method, "status": add_status}


# More conditions do not restrict a search any further, and each form of a search is a statement of its own.
CONDITIONS_MAX = 10

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
SYMBOLS = {"€": "EUR", "£": "GBP", "$": ""}  # a dollar is a currency of several countries
INTEGER_DIGITS_MAX = 13

# Signs around a part, which mean nothing. Double quotation marks have a meaning.
OPENING, CLOSING = r"[(\[{'\u00ab\u2018-\u201f\u2039]*", r"[)\]}>'\u00bb\u2018-\u201f\u203a,;.:!?]*"

# The address of a payment, in the API or in the admin, which quotes the ID: `_` becomes `_5F`.
ADDRESS = re.compile(r"/(?:v2/payments|(?P<admin>payments/payment))/(?P<id>pt_[A-Za-z0-9_-]+)")
# The ID of a payment, maybe with signs around it or behind its name.
PASTED_ID = re.compile(
    rf"\W*(?:payment\b\W*)?(?:id\b\W*)?(?P<id>(?-i:{PAYMENT_ID[2:-2]}))\W*", re.IGNORECASE | re.UNICODE
)

RANGE_BOUNDS = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}
BOUND_NAMES = {">": "more than", ">=": "at least", "<": "less than", "<=": "at most"}


def read_search(text: str, *, today: date, zone: ZoneInfo) -> Search:
    """Return the meaning of a text on the day `today` of a time zone.

    :raises InvalidSearch: it contains nothing to search for, or too much
    """
    text = unicodedata.normalize("NFC", text.strip())
    if payment_id := pasted_id(text):
        return Search(today, zone, payment_id=payment_id)
    search = Search(today, zone)
    while text:
        match, read = next((match, read) for pattern, read in PATTERNS if (match := pattern.match(text)))
        read(search, match)
        text = text[match.end() :].lstrip()
    if len(search.groups) > CONDITIONS_MAX:
        raise InvalidSearch(f"Enter at most {CONDITIONS_MAX} words.")
    if not search.meanings:
        raise InvalidSearch("Enter a word, a number or a date.")
    return search


def pasted_id(text: str) -> str | None:
    """Return the payment ID in a text that is one, or that has the address of a payment."""
    if pasted := PASTED_ID.fullmatch(text):
        return pasted["id"]
    if not (address := ADDRESS.search(text)):
        return None
    payment_id = unquote(address["id"]) if address["admin"] else address["id"]
    return payment_id if re.fullmatch(PAYMENT_ID, payment_id) else None


def read_customer(search: Search, match: re.Match[str]) -> None:
    search.add_parameter("customerId", match["id"])
    search.meanings.append(f"the customer {match['id']}")


def read_amount(search: Search, match: re.Match[str]) -> None:
    value = decimal(match["number"])
    sign = (match["before"] or match["after"] or "").strip().upper()
    currency = SYMBOLS.get(sign, sign)
    search.groups.append(f"{AMOUNT}{value}")
    if currency:
        search.add_parameter("currency", currency)
    search.add_meaning(f"the amount {grouped(value)} {currency}".rstrip())


def read_integer(search: Search, match: re.Match[str]) -> None:
    """Read digits: a word, an amount and, if there are four, the end of a card number."""
    digits = match["digits"]
    alternatives = {f"{WORD}{digits}": f"the word {digits}"}
    if len(digits) <= INTEGER_DIGITS_MAX and (digits == "0" or digits[0] != "0"):
        alternatives[f"{AMOUNT}{digits}.00"] = f"the amount {grouped(digits)}.00"
    if len(digits) == 4:  # noqa: PLR2004  the last four digits of a card
        alternatives[f"{CARD}{digits}"] = f"a card number that ends in {digits}"
    search.groups.append(" ".join(alternatives))
    search.meanings.append(" or ".join(alternatives.values()))


def read_date(search: Search, match: re.Match[str]) -> None:
    """Read a day, or a month."""
    parts = match.groupdict()
    month = parts["month"]
    try:
        number = int(month) if month.isdecimal() else MONTHS.index(month[:3].lower()) + 1
        first = date(int(parts["year"]), number, int(parts.get("day", 1)))
        check_year(first)
    except (ValueError, ValidationError):
        read_words(search, match)
        return
    if "day" in parts:
        add_days(search, first, first, f"created on {first}")
    else:
        add_days(search, first, last_of_month(first), f"created in {first:%Y-%m}")


def add_days(search: Search, first: date, last: date, meaning: str) -> None:
    for name, value in day_parameters("createdAt", first, last, zone=search.zone).items():
        search.add_parameter(name, value)
    search.add_meaning(meaning)


def read_words(search: Search, match: re.Match[str]) -> None:
    words = split_words(folded(match[0]))
    search.groups += [f"{WORD}{word}" for word in words]
    if words:
        joined = unicodedata.normalize("NFC", " ".join(words))
        search.meanings.append(f"the {'words' if len(words) > 1 else 'word'} {joined}")


def read_relative_day(search: Search, match: re.Match[str]) -> None:
    day = search.today - timedelta(days=match["name"].lower() == "yesterday")
    add_days(search, day, day, f"created on {day}")


def read_range(search: Search, match: re.Match[str]) -> None:
    """Read the lower or the upper bound of the amount, such as `>=100 EUR`."""
    value, currency = decimal(match["number"]), (match["currency"] or "").upper()
    if not currency:
        raise InvalidSearch(f"Enter a currency after the amount, such as {match['sign']}{match['number']} EUR.")
    search.add_parameter(f"amount[{RANGE_BOUNDS[match['sign']]}]", value)
    search.add_parameter("currency", currency)
    search.add_meaning(f"an amount of {BOUND_NAMES[match['sign']]} {grouped(value)} {currency}")


def refuse_exclusion(search: Search, match: re.Match[str]) -> None:
    raise InvalidSearch(f"The search cannot exclude words. Remove the minus sign before {match['word']}.")


def read_named(search: Search, match: re.Match[str]) -> None:
    """Read a named value, such as `status:failed`. A metadata pair may also be a parameter of the API."""
    name, value = match["name"], match["value"].replace('"', "")
    if not value or value.startswith("//"):  # the beginning of an address
        read_words(search, match)
    elif add := NAMED.get(name.lower()):
        add(search, value)
    else:
        add_pair(search, re.sub(r"\Ametadata\[(.+)\]\Z", r"\1", name), value)


def decimal(number: str) -> str:
    """Return an amount with a point and two decimal places: `1234.50` for `1.234,5`."""
    decimals = re.search(r"[.,]([0-9]{1,2})\Z", number)
    whole = number[: decimals.start()] if decimals else number
    return f"{re.sub('[.,]', '', whole)}.{(decimals[1] if decimals else '').ljust(2, '0')}"


def patterns() -> Iterator[tuple[re.Pattern[str], Callable[[Search, re.Match[str]], None]]]:
    """Yield the forms of a part, each with the function that reads it. The first form that matches counts."""
    end = rf"{CLOSING}(?=\s|$)"
    codes = "|".join(sorted(CURRENCIES))
    before = rf"(?P<before>[€£$]\s?|(?-i:{codes})\s)"
    after = rf"\s?(?P<after>[€£$]|{codes})"
    decimals = r"[.,][0-9]{1,2}"
    clock = r"(?:,?[T\s][0-9]{1,2}:[0-9]{2}(?::[0-9.]+)?\s?(?:Z|UTC|[+-][0-9:]+)?)?"  # a time, which does not restrict
    year, month, day = r"(?P<year>[0-9]{4})", r"(?P<month>0?[1-9]|1[0-2])", r"(?P<day>[0-9]{1,2})"
    whole = r"-?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,3}(?:\.[0-9]{3})+|[0-9]{1,13})"
    forms = (
        (r'"[^"]*"?', read_words),
        (rf"(?P<name>today|yesterday){end}", read_relative_day),
        (rf"(?P<sign>[<>]=?)\s?(?P<number>{whole}(?:{decimals})?)(?:\s?(?P<currency>{codes}))?{end}", read_range),
        (r"-(?P<word>[^\W\d_]\S*)", refuse_exclusion),
        (r"(?P<name>[^\W\d][\w.\[\]-]*)[:=](?P<value>[^\s\"]*\"[^\"]+\"|\S+)", read_named),
        (rf"(?P<id>(?-i:{CUSTOMER_ID[2:-2]})){end}", read_customer),
        (rf"[X*•·][X*•· -]*(?P<digits>[0-9]{{4}}){end}", lambda search, match: add_card(search, match["digits"])),
        (rf"{year}(?P<sign>[-/.]){month}(?P=sign){day}{clock}{end}", read_date),
        (rf"{day}(?P<sign>[-/.]){month}(?P=sign){year}{clock}{end}", read_date),
        (rf"{month}/{day}/{year}{end}", read_date),  # the first number cannot be the day
        (rf"{day}(?:\.|st|nd|rd|th)?[\s/-]+{MONTH}[\s,/-]+{year}{clock}{end}", read_date),
        (rf"{MONTH}\s{day}(?:st|nd|rd|th)?,?\s{year}{end}", read_date),
        (rf"{MONTH}[\s,/-]+{year}{end}", read_date),
        (rf"{year}-(?P<month>[0-9]{{2}}){end}", read_date),
        (rf"{before}(?P<number>{whole}(?:{decimals})?)(?P<after>){end}", read_amount),
        (rf"(?P<before>)(?P<number>{whole}(?:{decimals})?){after}{end}", read_amount),
        (rf"(?P<before>)(?P<number>{whole}{decimals})(?P<after>){end}", read_amount),
        (rf"(?P<before>)(?P<number>-?[0-9]{{1,3}}(?:[.,][0-9]{{3}})+)(?P<after>){end}", read_amount),
        (r"(?P<digits>[0-9]+)" + end, read_integer),
        (r"\S+", read_words),
    )
    for pattern, read in forms:
        yield re.compile(OPENING + pattern, re.IGNORECASE | re.UNICODE), read


PATTERNS = tuple(patterns())
