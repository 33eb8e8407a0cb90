"""What the text of the search box means."""

from contextlib import suppress
from datetime import date

import pytest

from payments.admin.payments.search_box import CONDITIONS_MAX, InvalidSearch, Search, read_search

TODAY = date(2026, 3, 5)
DAY = {"createdAt[gte]": "2026-03-04", "createdAt[lt]": "2026-03-05"}
MONTH = {"createdAt[gte]": "2026-12-01", "createdAt[lt]": "2027-01-01"}


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("lamp", [":lamp"]),
        ("Order #84820-x", [":Order", ":84820", ":x"]),
        ("anna@example.com", [":anna", ":example", ":com"]),
        ("84820", [":84820 =84820.00"]),
        ("0042", [":0042 #0042"]),
        ("4242", [":4242 =4242.00 #4242"]),
        ("0", [":0 =0.00"]),
        ("12345678901234", [":12345678901234"]),
        ('"84820"', [":84820"]),
        ('"42.32 EUR', [":42", ":32", ":EUR"]),
        ("x4242", ["#4242"]),
        ("**** 4242", ["#4242"]),
        ("XXXX-XXXX 4242", ["#4242"]),
        ("42.32", ["=42.32"]),
        ("42,32", ["=42.32"]),
        ("42.3", ["=42.30"]),
        ("-42.32", ["=-42.32"]),
        ("1,234.50", ["=1234.50"]),
        ("1.234,50", ["=1234.50"]),
        ("1,234", ["=1234.00"]),
        ("1.234.567", ["=1234567.00"]),
        ("$42", ["=42.00"]),
        ("42.32.1", [":42", ":32", ":1"]),
        ("v1.2", [":v1", ":2"]),
        ("2026-13-01", [":2026", ":13", ":01"]),
        ("2026-02-30", [":2026", ":02", ":30"]),
        ("30.2.2026", [":30", ":2", ":2026"]),
        ("9999-12-31", [":9999", ":12", ":31"]),
        ("1.1.1899", [":1", ":1", ":1899"]),
        ("0001-01", [":0001", ":01"]),
        ("order 84820", [":order", ":84820 =84820.00"]),
        ("  Café  日本 ", [":Café", ":日本"]),
    ],
)
def test_text_is_read_as_terms(text: str, groups: list[str]) -> None:
    search = read_search(text, today=TODAY)

    assert (search.groups, search.parameters) == (groups, {})


@pytest.mark.parametrize(
    ("text", "groups", "parameters"),
    [
        ("ct_7", [], {"customerId": "ct_7"}),
        ("42.32 EUR", ["=42.32"], {"currency": "EUR"}),
        ("42.32eur", ["=42.32"], {"currency": "EUR"}),
        ("EUR 42", ["=42.00"], {"currency": "EUR"}),
        ("€42.32", ["=42.32"], {"currency": "EUR"}),
        ("42,32 €", ["=42.32"], {"currency": "EUR"}),
        ("£ 1,234.50", ["=1234.50"], {"currency": "GBP"}),
        ("2026-03-04", [], DAY),
        ("4.3.2026", [], DAY),
        ("04.03.2026", [], DAY),
        ("4 Mar 2026", [], DAY),
        ("4. march 2026", [], DAY),
        ("March 4, 2026", [], DAY),
        ("2026-12", [], MONTH),
        ("Yesterday", [], DAY),
        ("today", [], {"createdAt[gte]": "2026-03-05", "createdAt[lt]": "2026-03-06"}),
        ("lamp 2026-03-04 10.00 EUR", [":lamp", "=10.00"], {**DAY, "currency": "EUR"}),
        ("ct_7 lamp", [":lamp"], {"customerId": "ct_7"}),
        ("order_id:84820", [], {"metadata[order_id]": "84820"}),
        ("order=a=b lamp", [":lamp"], {"metadata[order]": "a=b"}),
        ('name:"A. Baker" x', [":x"], {"metadata[name]": "A. Baker"}),
        ("metadata:status=sent", [], {"metadata[status]": "sent"}),
        ("status:Failed method:ideal", [], {"status": "failed", "method": "ideal"}),
        ("card:4242", ["#4242"], {}),
        ("last4:4242", ["#4242"], {}),
        (">100 EUR", [], {"amount[gt]": "100.00", "currency": "EUR"}),
        (">=1.5eur <= 2,000 EUR", [], {"amount[gte]": "1.50", "amount[lte]": "2000.00", "currency": "EUR"}),
        ("https://shop.example", [":https", ":shop", ":example"], {}),
        ("12:30", [":12", ":30"], {}),
        ("4 \u017fep 2026", [":4", ":\u017fep", ":2026"], {}),
        ("method:applePay", [], {"method": "applePay"}),
        ('metadata:status="in transit"', [], {"metadata[status]": "in transit"}),
        ("red-lamp - blue", [":red", ":lamp", ":blue"], {}),
    ],
)
def test_text_is_read_as_filters(text: str, groups: list[str], parameters: dict[str, str]) -> None:
    search = read_search(text, today=TODAY)

    assert (search.groups, search.parameters) == (groups, parameters)


@pytest.mark.parametrize("part", ["x", "x ", "*-", "1,234", "1.234.", "0", '"', "€ ", "EUR ", "1 jan "])
def test_text_that_almost_has_a_form_takes_no_exponential_time(part: str) -> None:
    text = (part * 200)[:200]

    with suppress(InvalidSearch):
        assert read_search(f"{text}?", today=TODAY).meanings


def test_payment_id_is_read_as_such() -> None:
    assert read_search(" pt_7 ", today=TODAY) == Search(TODAY, payment_id="pt_7")


@pytest.mark.parametrize(
    ("text", "meanings", "has_alternative"),
    [
        ("4242", ["the word 4242 or the amount 4,242.00 or a card number that ends in 4242"], False),
        ("red lamp", ["the word red", "the word lamp"], False),
        ("anna@example", ["the words anna example"], False),
        ("1234.5 EUR", ["the amount 1,234.50 EUR"], True),
        ("2026-03", ["created in 2026-03"], True),
        (">100 EUR", ["an amount of more than 100.00 EUR"], True),
        ("order:7", ["the metadata order=7"], True),
        ("status:open card:4242", ["the status open", "a card number that ends in 4242"], True),
        ("2026-03-04 ct_7", ["created on 2026-03-04", "the customer ct_7"], True),
    ],
)
def test_meaning_of_each_part_is_described(text: str, meanings: list[str], has_alternative: bool) -> None:
    search = read_search(text, today=TODAY)

    assert (search.meanings, search.has_alternative) == (meanings, has_alternative)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("#", "Enter a word, a number or a date."),
        ('""', "Enter a word, a number or a date."),
        ("w " * (CONDITIONS_MAX + 1), "Enter at most 10 words."),
        ("2026-03 2026-04", "Enter only one date."),
        ("ct_7 ct_8", "Enter only one customer."),
        ("5 EUR 7 USD", "Enter only one currency."),
        (">1 EUR >2 EUR", "Enter only one lower bound of the amount."),
        ("order:1 order:2", "Enter only one value of each metadata key."),
        ("status:open status:failed", "Enter only one status."),
        ("status:lost", "Enter one of these after status: open, pending, authorized"),
        ("metadata:order", "Enter a key and a value after metadata, such as metadata:order=84820."),
        ("card:42", "Enter the last four digits of the card, such as card:4242."),
        (">100", "Enter a currency after the amount, such as >100 EUR."),
        ("lamp -visa", "The search cannot exclude words. Remove the minus sign before visa."),
    ],
)
def test_text_that_cannot_be_searched_for_is_refused(text: str, error: str) -> None:
    with pytest.raises(InvalidSearch, match=error):
        read_search(text, today=TODAY)
