"""The search box: reads its text as IDs, words, amounts, card numbers, days, and names of statuses and methods.

Each part of the text restricts the search further. If a part can mean several things, any of them may match: `4242` is
a word, an amount and the end of a card number. Text in quotation marks is only words. A named value is a metadata pair,
such as `order:84820`, or has one of the names of `NAMED`, such as `status:failed`. The address of a payment is read as
its ID. Some small words of a sentence are left out.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from zoneinfo import ZoneInfo

from django.contrib.admin.utils import unquote

from payments.admin.payments import search_parts
from payments.admin.payments.search_days import FORMS
from payments.admin.payments.search_parts import BRANDS, METHODS, STATUSES, Day, InvalidSearch, Part, Reader, words_of
from payments.models import CUSTOMER_ID, PAYMENT_ID
from payments.models.choices import CURRENCIES

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

# Patterns of words without a meaning for the search.
FILLERS = (
    r"(?:i|we|he|she|they)(?:\s(?:have|has)|['\u2019](?:ve|s))?\spaid",
    r"(?:a\s|the\s)?(?:payment|amount)\sof",
    r"(?-i:AT|BE|CH|CZ|DE|DK|ES|FI|FR|GB|IE|IT|LU|NL|NO|PL|PT|SE|UK|US)",  # countries
    *("about", "and", "at", "by", "for", "from", "in", "my", "of", "on", "the", "to", "with"),
)

# More conditions do not restrict a search any further, and each form of a search is a statement of its own.
CONDITIONS_MAX = 10

# Signs around a part, which mean nothing. Double quotation marks have a meaning.
OPENING, CLOSING = r"[(\[{'\u00ab\u2018-\u201f\u2039]*", r"[)\]}>'\u00bb\u2018-\u201f\u203a,;.:!?]*"

# The address of a payment, in the API or in the admin, which quotes the ID: `_` becomes `_5F`.
ADDRESS = re.compile(r"/(?:v2/payments|(?P<admin>payments/payment))/(?P<id>pt_[A-Za-z0-9_-]+)")
# The ID of a payment, maybe with signs around it or behind its name.
PASTED_ID = re.compile(
    rf"\W*(?:payment\b\W*)?(?:id\b\W*)?(?P<id>(?-i:{PAYMENT_ID[2:-2]}))\W*", re.IGNORECASE | re.UNICODE
)


@dataclass(frozen=True)
class Search:
    """The meaning of a text."""

    parts: tuple[Part, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    payment_id: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def groups(self) -> list[str]:
        return [group for part in self.parts for group in part.groups]

    @property
    def meaning(self) -> str:
        return " · ".join(part.meaning for part in self.parts)

    @property
    def has_alternative(self) -> bool:
        """Return whether a part of the text is not searched for as words."""
        return bool(self.left_out) or not all(part.is_text for part in self.parts)


def read_search(text: str, *, today: date, zone: ZoneInfo) -> Search:
    """Return the meaning of a text on the day `today` of a time zone.

    :raises InvalidSearch: it contains nothing to search for, or too much
    """
    text = unicodedata.normalize("NFC", text.strip())
    if payment_id := pasted_id(text):
        return Search(payment_id=payment_id)
    all_parts = list(read_parts(text, Day(today, zone)))
    parts = tuple(part for part in all_parts if part.meaning)
    left_out = tuple(part.text for part in all_parts if not part.meaning and re.search(r"\w", part.text))
    if left_out and not parts:
        parts, left_out = (words_of(text),), ()
    search = Search(parts, merged(parts), left_out=left_out)
    if len(search.groups) > CONDITIONS_MAX:
        raise InvalidSearch(f"Enter at most {CONDITIONS_MAX} words.")
    if not parts:
        raise InvalidSearch("Enter a word, a number or a date.")
    return search


def read_parts(text: str, day: Day) -> Iterator[Part]:
    while text:
        match, read = next((match, read) for pattern, read in PATTERNS if (match := pattern.match(text)))
        yield read(match, day)
        text = text[match.end() :].lstrip()


def merged(parts: tuple[Part, ...]) -> dict[str, str]:
    """Return the parameters of all parts.

    :raises InvalidSearch: two parts contradict each other
    """
    parameters: dict[str, str] = {}
    for name, value in (item for part in parts for item in part.parameters.items()):
        if parameters.setdefault(name, value) != value:
            raise InvalidSearch(f"Enter only one {NOUNS.get(name, 'value of each metadata key')}.")
    return parameters


def pasted_id(text: str) -> str | None:
    """Return the payment ID in a text that is one, or that has the address of a payment."""
    if pasted := PASTED_ID.fullmatch(text):
        return pasted["id"]
    if not (address := ADDRESS.search(text)):
        return None
    payment_id = unquote(address["id"]) if address["admin"] else address["id"]
    return payment_id if re.fullmatch(PAYMENT_ID, payment_id) else None


def patterns() -> Iterator[tuple[re.Pattern[str], Reader]]:
    """Yield the forms of a part, each with the function that reads it. The first form that matches counts."""
    end = rf"{CLOSING}(?=\s|$)"
    codes = "|".join(sorted(CURRENCIES))
    before = rf"(?P<before>[€£$]\s?|(?-i:{codes})\s)"
    after = rf"\s?(?P<after>[€£$]|{codes}|euros?|pounds?|dollars?)"
    decimals = r"[.,][0-9]{1,2}"
    whole = r"-?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,3}(?:\.[0-9]{3})+|[0-9]{1,13})"
    amount = rf"{whole}(?:{decimals})?"
    number = rf"(?P<number>{amount})"
    last_four = r"(?P<digits>[0-9](?:[ -]?[0-9]){3})"
    brands = "|".join(BRANDS)
    before_four = rf"\.\.+|…|(?:ends|ending)(?: in| with)? |card |(?P<brand>{brands}) "
    words = "|".join([*STATUSES, *METHODS, "eur", "gbp", "usd", "euros?", "pounds?", "dollars?"]).replace(" ", r"\s")
    forms: tuple[tuple[str, Reader], ...] = (
        (r'"[^"]*"?', search_parts.read_words),
        (rf"(?P<sign>[<>]=?)\s?{number}(?:{after})?{end}", search_parts.read_bound),
        (rf"(?P<lower>{amount})\s?-\s?(?P<upper>{amount}){after}{end}", search_parts.read_range),
        (r"-(?P<word>[^\W\d_]\S*)", search_parts.refuse_exclusion),
        (r"(?:https?://|www\.)[^/\s]+(?P<path>\S*)", search_parts.read_address),
        (r"(?P<name>[^\W\d][\w.-]*):(?P<value>[^\s\"]*\"[^\"]+\"|\S+)", search_parts.read_named),
        (rf"(?P<id>(?-i:{CUSTOMER_ID[2:-2]})){end}", search_parts.read_customer),
        # A masked card number, as the page of a payment shows it, or its end.
        (rf"(?:[0-9]{{4}}[ -]?[0-9]{{0,4}}[ -]?)?[X*•·][X*•· -]*{last_four}{end}", search_parts.read_card),
        (rf"(?:{before_four})\s?(?P<digits>[0-9]{{4}}){end}", search_parts.read_card),
        *((f"{form}{end}", search_parts.read_days) for form in FORMS),
        (rf"{before}{number}(?P<after>){end}", search_parts.read_amount),
        (rf"(?P<before>){number}{after}{end}", search_parts.read_amount),
        (rf"(?P<before>)(?P<number>{whole}{decimals})(?P<after>){end}", search_parts.read_amount),
        (rf"(?P<before>)(?P<number>-?[0-9]{{1,3}}(?:[.,][0-9]{{3}})+)(?P<after>){end}", search_parts.read_amount),
        (rf"(?P<numbers>[0-9]+-[0-9]+){end}", search_parts.read_numbers),
        (rf"(?P<digits>[0-9]+){end}", search_parts.read_integer),
        (r"\S*\w\*+(?=\s|$)", search_parts.read_beginning),
        (rf"(?:{'|'.join(FILLERS)}),?(?=\s|$)", search_parts.leave_out),
        (rf"(?P<word>{words}){end}", search_parts.read_word),
        (r"\S+", search_parts.read_words),
    )
    for pattern, read in forms:
        yield re.compile(OPENING + pattern, re.IGNORECASE | re.UNICODE), read


PATTERNS = tuple(patterns())
