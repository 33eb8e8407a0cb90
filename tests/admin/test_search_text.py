"""What the text of the search box means."""

from contextlib import suppress
from datetime import date
from zoneinfo import ZoneInfo

import pytest

from payments.admin.payments.display import payment_href
from payments.admin.payments.search_box import CONDITIONS_MAX, Search, read_search
from payments.admin.payments.search_parts import InvalidSearch
from payments.listing.filters import day_parameters

TODAY = date(2026, 3, 5)
UTC = ZoneInfo("UTC")
DAY = {"createdAt[gte]": "2026-03-04T00:00:00.000", "createdAt[lt]": "2026-03-05T00:00:00.000"}
DAYS = (
    *("4.3.2026", "04.03.2026", "04/03/2026", "4/3/2026", "04-03-2026", "(4-3-2026)", "2026/03/04", "2026.03.04"),
    *("4 Mar 2026", "4. march 2026", "4th March, 2026", "04-Mar-2026", "4/Mar/2026", "March 4, 2026", "Mar 4th 2026"),
    *("2026-03-04T10:00:00.000", "2026-03-04T10:00Z", "2026-03-04.", "2026-03-04T10:00:00+00:00", "2026-03-04 10:00"),
    *("2026-03-04 10:00:01 UTC", "04 Mar 2026, 10:00:01", "04/03/2026 10:00"),
)
MONTH = {"createdAt[gte]": "2026-12-01T00:00:00.000", "createdAt[lt]": "2027-01-01T00:00:00.000"}
MONTHS = ("2026-12", "December 2026", "dec 2026", "Dec. 2026", "december, 2026", "Dec-2026", "[Dec 2026]")


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("lamp", [":lamp"]),
        ("Order #84820-x", [":order", ":84820", ":x"]),
        ("anna@example.com", [":anna", ":example", ":com"]),
        ("84820", [":84820 =84820.00"]),
        ("0042", [":0042 #0042"]),
        ("4242", [":4242 =4242.00 #4242"]),
        ("0", [":0 =0.00"]),
        ("12345678901234", [":12345678901234"]),
        ('"84820"', [":84820"]),
        ('"42.32 EUR', [":42", ":32", ":eur"]),
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
        ("  Café  日本 ", [":cafe\u0301", ":日本"]),
        ("CAFE\u0301 Straße", [":cafe\u0301", ":strasse"]),
        ("[84820], (lamp).", [":84820 =84820.00", ":lamp"]),
        ("“red lamp”", [":red", ":lamp"]),
        ("'42,32'.", ["=42.32"]),
        ("31/04/2026", [":31", ":04", ":2026"]),
        ("13/13/2026", [":13", ":13", ":2026"]),
        ("29/03-2026", [":29", ":03", ":2026"]),
        ("12/2026 2026-1", [":12", ":2026", ":2026", ":1"]),  # numbers of invoices
        ("Market-2026", [":market", ":2026"]),
        ("Mary 20260", [":mary", ":20260 =20260.00"]),
    ],
)
def test_text_is_read_as_terms(text: str, groups: list[str]) -> None:
    search = read_search(text, today=TODAY, zone=UTC)

    assert (search.groups, search.parameters) == (groups, {})


@pytest.mark.parametrize(
    ("text", "groups", "parameters"),
    [
        ("ct_7", [], {"customerId": "ct_7"}),
        ("(ct_7).", [], {"customerId": "ct_7"}),
        ("42.32 EUR", ["=42.32"], {"currency": "EUR"}),
        ("42.32eur", ["=42.32"], {"currency": "EUR"}),
        ("EUR 42", ["=42.00"], {"currency": "EUR"}),
        ("€42.32", ["=42.32"], {"currency": "EUR"}),
        ("42,32 €", ["=42.32"], {"currency": "EUR"}),
        ("£ 1,234.50", ["=1234.50"], {"currency": "GBP"}),
        ("2026-03-04", [], DAY),
        *((day, [], DAY) for day in DAYS),
        *((month, [], MONTH) for month in MONTHS),
        ("3/4/2026", [], {"createdAt[gte]": "2026-04-03T00:00:00.000", "createdAt[lt]": "2026-04-04T00:00:00.000"}),
        ("03/29/2026", [], {"createdAt[gte]": "2026-03-29T00:00:00.000", "createdAt[lt]": "2026-03-30T00:00:00.000"}),
        ("Yesterday", [], DAY),
        ("today", [], {"createdAt[gte]": "2026-03-05T00:00:00.000", "createdAt[lt]": "2026-03-06T00:00:00.000"}),
        ("lamp 2026-03-04 10.00 EUR", [":lamp", "=10.00"], {**DAY, "currency": "EUR"}),
        ("ct_7 lamp", [":lamp"], {"customerId": "ct_7"}),
        ("order_id:84820", [], {"metadata[order_id]": "84820"}),
        ("order=a=b", [":order", ":a", ":b"], {}),
        ('name:"A. Baker" x', [":x"], {"metadata[name]": "A. Baker"}),
        ("Größe:L", [], {"metadata[Größe]": "L"}),
        ("Gro\u0308ße:e\u0301", [], {"metadata[Größe]": "é"}),
        ("CT_7", [":ct", ":7"], {}),
        ("refund:pt_7", [], {"metadata[refund]": "pt_7"}),
        ("url:https://shop.example/pt_7", [], {"metadata[url]": "https://shop.example/pt_7"}),
        ("status:Failed method:ideal", [], {"status": "failed", "method": "ideal"}),
        ("card:4242", ["#4242"], {}),
        (">100 EUR", [], {"amount[gt]": "100.00", "currency": "EUR"}),
        (">=1.5eur <= 2,000 EUR", [], {"amount[gte]": "1.50", "amount[lte]": "2000.00", "currency": "EUR"}),
        ("https://shop.example", [":https", ":shop", ":example"], {}),
        ("12:30", [":12", ":30"], {}),
        ("4 \u017fep 2026", [":4", ":sep", ":2026"], {}),
        ("method:applePay", [], {"method": "applePay"}),
        ('state:"in transit"', [], {"metadata[state]": "in transit"}),
        ("red-lamp - blue", [":red", ":lamp", ":blue"], {}),
    ],
)
def test_text_is_read_as_filters(text: str, groups: list[str], parameters: dict[str, str]) -> None:
    search = read_search(text, today=TODAY, zone=UTC)

    assert (search.groups, search.parameters) == (groups, parameters)


@pytest.mark.parametrize(
    "part",
    [
        "x",
        "x ",
        "*-",
        "1,234",
        "1.234.",
        "0",
        '"',
        "€ ",
        "EUR ",
        "1 jan ",
        "/",
        "a/",
        "(",
        "id ",
        "1/1/",
        "a[",
        ").",
        "jan-",
    ],
)
def test_text_that_almost_has_a_form_takes_no_exponential_time(part: str) -> None:
    text = (part * 200)[:200]

    with suppress(InvalidSearch):
        assert read_search(f"{text}?", today=TODAY, zone=UTC).parts


@pytest.mark.parametrize(
    "text",
    [
        *(
            " pt_7 ",
            "(pt_7)",
            "[pt_7].",
            "<pt_7>",
            '"pt_7"',
            "'pt_7',",
            "„pt_7“",
            "«pt_7»",
            "`pt_7`;",
            "#pt_7",
            "pt_7?",
        ),
        *("Payment pt_7", "payment ID: pt_7", "id (pt_7)", "Payment: https://pay.example/v2/payments/pt_7."),
        *("https://pay.example/v2/payments/pt_7", "HTTP://pay.example:8000/v2/payments/pt_7/?a=pt_8#b"),
        *("<https://pay.example/v2/payments/pt_7>", "pay.example/v2/payments/pt_7", "/v2/payments/pt_7"),
        "https://pay.example/admin/payments/payment/pt_5F7/change/?organization=8&mode=live&q=a+b+c+d+e+f+g+h+i+j+k+l",
        "localhost:8000/admin/payments/payment/pt_5F7/change/",
        *(f"https://pay.example/admin/payments/payment/pt_5F7{end}" for end in ("/change", "/history/", "/")),
        *(
            "See https://pay.example/v2/payments/pt_7, please",
            "curl https://pay.example/v2/payments/pt_7 -H 'Accept: */*'",
        ),
    ],
)
def test_payment_id_is_read_as_such(text: str) -> None:
    assert read_search(text, today=TODAY, zone=UTC) == Search(payment_id="pt_7")


@pytest.mark.parametrize("payment_id", ["pt_7-", "pt__", "pt_5F7", "pt_A-b_", f"pt_{'a' * 61}", f"pt_{'_' * 61}"])
def test_each_character_of_a_payment_id_counts(payment_id: str) -> None:
    quoted = payment_href(payment_id)

    for text in (
        f"({payment_id})",
        f"https://pay.example/v2/payments/{payment_id}",
        f"https://pay.example{quoted}?q=x",
        f"https://pay.example{quoted.removesuffix('change/')}",
    ):
        assert read_search(text, today=TODAY, zone=UTC).payment_id == payment_id


@pytest.mark.parametrize(
    "text", ["pt_7 lamp", "pt_7 pt_8", "PT_7", f"pt_{'7' * 62}", "xpt_7", "https://pay.example/?from=pt_7"]
)
def test_text_with_other_parts_is_no_payment_id(text: str) -> None:
    assert read_search(text, today=TODAY, zone=UTC).payment_id == ""


@pytest.mark.parametrize(
    ("text", "meaning", "has_alternative"),
    [
        ("4242", "Card ending in 4242 (or the word, or 4,242.00)", False),
        ("0042", "Card ending in 0042 (or the word)", False),
        ("84820", "“84820” (or 84,820.00)", False),
        ("red lamp", "“red” · “lamp”", False),
        ("CAFÉ-BAR", "“café bar”", False),
        ("March 2026", "March 2026", True),
        ("29/03/2026", "Created on Sunday, 29 March 2026", True),
        ("last week", "23 February to 1 March 2026", True),
        ("1234.5 EUR", "Amount 1,234.50 EUR", True),
        (">100 EUR", "More than 100.00 EUR", True),
        ("100-200 EUR", "From 100.00 to 200.00 EUR", True),
        ("100-200", "“100 200” (an amount needs a currency: 100-200 EUR)", False),
        ("visa 4242", "Card ending in 4242 (of any brand)", True),
        ("order:7", "Metadata order: 7", True),
        ("card", "Method creditcard or card", True),
        ("status:open card:4242", "Status open · Card ending in 4242", True),
        ("2026-03-04 ct_7", "Created on Wednesday, 4 March 2026 · Customer ct_7", True),
        ("order 8482*", "“order” · Words that begin with “8482”", True),
        ("https://shop.example/7/orders/84820?b=9", "“84820” of the address", True),
    ],
)
def test_meaning_of_each_part_is_described(text: str, meaning: str, has_alternative: bool) -> None:
    search = read_search(text, today=TODAY, zone=UTC)

    assert (search.meaning, search.has_alternative) == (meaning, has_alternative)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("Thursday", ("2026-03-05", "2026-03-05")),
        ("wed", ("2026-03-04", "2026-03-04")),
        ("on Friday", ("2026-02-27", "2026-02-27")),
        ("last Thursday", ("2026-02-26", "2026-02-26")),
        ("5 March", ("2026-03-05", "2026-03-05")),
        ("6 Mar", ("2025-03-06", "2025-03-06")),
        ("24th of November", ("2025-11-24", "2025-11-24")),
        ("Monday, 24 Nov", ("2025-11-24", "2025-11-24")),
        ("Nov 24", ("2025-11-24", "2025-11-24")),
        ("24/11", ("2025-11-24", "2025-11-24")),
        ("11/24", ("2025-11-24", "2025-11-24")),
        ("4/3", ("2026-03-04", "2026-03-04")),
        ("29 feb", ("2024-02-29", "2024-02-29")),
        ("March", ("2026-03-01", "2026-03-31")),
        ("last March", ("2025-03-01", "2025-03-31")),
        ("oct", ("2025-10-01", "2025-10-31")),
        ("April", ("2025-04-01", "2025-04-30")),
        ("last week", ("2026-02-23", "2026-03-01")),
        ("this week", ("2026-03-02", "2026-03-05")),
        ("Last  month", ("2026-02-01", "2026-02-28")),
        ("last 7 days", ("2026-02-27", "2026-03-05")),
    ],
)
def test_days_without_a_year_are_the_last_ones(text: str, days: tuple[str, str]) -> None:
    first, last = map(date.fromisoformat, days)

    parameters = read_search(text, today=TODAY, zone=UTC).parameters
    assert parameters == day_parameters("createdAt", first, last, zone=UTC)


@pytest.mark.parametrize("text", ["31/4", "13/13", "31 June", "mondays", "marching", "24/11/2026/7", "lastmonth"])
def test_other_texts_are_no_days(text: str) -> None:
    search = read_search(text, today=TODAY, zone=UTC)

    assert (search.parameters, all(part.is_text for part in search.parts)) == ({}, True)


@pytest.mark.parametrize(
    ("text", "groups", "parameters"),
    [
        ("failed", [], {"status": "failed"}),
        ("Declined iDEAL", [], {"status": "failed", "method": "ideal"}),
        ("credit card", [], {"method": "creditcard,card"}),
        ("status:paid", [], {"status": "succeeded"}),
        ("currency:gbp", [], {"currency": "GBP"}),
        ("euros", [], {"currency": "EUR"}),
        ("42.32 euros", ["=42.32"], {"currency": "EUR"}),
        ("5 dollars", ["=5.00"], {}),
        ("100 - 200 pounds", [], {"amount[gte]": "100.00", "amount[lte]": "200.00", "currency": "GBP"}),
        ("I paid 42.32 euros by card", ["=42.32"], {"currency": "EUR", "method": "creditcard,card"}),
        ("a payment of €42", ["=42.00"], {"currency": "EUR"}),
        ("visa", [], {"method": "creditcard,card"}),
        *(
            (text, ["#4242"], {})
            for text in ("...4242", "…4242", "•••• 4242", "Visa 4242", "ending in 4242", "card 4242")
        ),
        ("4242 42XX XXXX 2618", ["#2618"], {}),
        ("3782 82XX XXX2 900", ["#2900"], {}),
        ("378282*****2900 lamp", ["#2900", ":lamp"], {}),
        ("INV-8482*", [":inv", ":8482*"], {}),
        ("https://shop.example/orders/84820", [":84820"], {}),
        ("www.shop.example/?a=7", [":7"], {}),
        ("of the", [":of", ":the"], {}),
        ("“failed”", [], {"status": "failed"}),
        ('"failed"', [":failed"], {}),
    ],
)
def test_words_of_a_mail_are_understood(text: str, groups: list[str], parameters: dict[str, str]) -> None:
    search = read_search(text, today=TODAY, zone=UTC)

    assert (search.groups, search.parameters) == (groups, parameters)


def test_words_that_are_left_out_are_named() -> None:
    assert read_search("I paid 42.32 on Tuesday", today=TODAY, zone=UTC).left_out == ("I paid", "on")
    assert read_search("of the", today=TODAY, zone=UTC).left_out == ()


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
        ("currency:euro", "Enter a code after currency, such as currency:EUR."),
        ("84*", "Enter at least 3 characters before *."),
        ("failed open", "Enter only one status."),
        ("card:42", "Enter the last four digits of the card, such as card:4242."),
        (">100", "Enter a currency after the amount, such as >100 EUR."),
        ("lamp -visa", "The search cannot exclude words. Remove the minus sign before visa."),
    ],
)
def test_text_that_cannot_be_searched_for_is_refused(text: str, error: str) -> None:
    with pytest.raises(InvalidSearch, match=error):
        read_search(text, today=TODAY, zone=UTC)
