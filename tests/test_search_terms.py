"""Search terms: what staff find payments by. Each test runs with the index, and with the terms of each payment."""

import json
import os
import unicodedata
from collections.abc import Callable
from decimal import Decimal
from importlib import import_module
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from django.db import connection, transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from payments.anonymization import anonymize_payments
from payments.listing.search_terms import FOLD, HasSearchTerms, folded, split_words
from payments.models import Access, Mode, Organization, Payment
from tests.support.factories import OrganizationFactory, PaymentFactory
from tests.support.migrated import copied_database
from tests.support.scale import examples

pytestmark = pytest.mark.django_db

LONG = "x" * 200  # longer than a term on PostgreSQL
AMEX = '{"cardNumber":"3782 82XX XXX2 900"}'

Found = Callable[..., list[str]]


def ids_with(access: Access, *groups: str, uses_index: bool) -> list[str]:
    condition = HasSearchTerms(*access, groups, uses_index=uses_index)
    return sorted(Payment.objects.visible_to(access).filter(condition).values_list("id", flat=True))


@pytest.fixture(params=[True, False], ids=["by the index", "by the list"])
def found(request: pytest.FixtureRequest) -> Found:
    """A function that returns the IDs of the payments with terms."""

    def found(*groups: str, organization: int = 1, mode: str = Mode.LIVE) -> list[str]:
        return ids_with(Access(organization, mode), *groups, uses_index=request.param)

    return found


def create_payment(payment_id: str = "pt_1", **values: Any) -> Payment:
    organization = values.pop("organization", None) or Organization.objects.get_or_create(id=1, name="Books")[0]
    return PaymentFactory.create(id=payment_id, organization=organization, **values)


@pytest.mark.parametrize(
    "groups",
    [
        (":84820",),
        (":order",),
        (":ORDER", ":84820"),
        (":lamp",),
        (":café",),
        (":CAFÉ",),
        (":日本",),
        (":7f3",),
        (":anna", ":example", ":com"),
        (":new", ":c"),
        (":line", ":two"),
        (":said", ":hello"),
        ("=1234.50",),
        ("#4242",),
        (":missing =1234.50",),
        (":missing", "=1234.50"),
    ],
)
def test_payment_is_found_by_its_terms(found: Found, groups: tuple[str, ...]) -> None:
    metadata = {"key": "7f3-anna@example.com", "path": r"c:\new", "text": 'line\ntwo "said" hello'}
    create_payment(
        description="Order #84820: lamp, café (日本。)",
        metadata=json.dumps(metadata),
        amount=Decimal("1234.50"),
        amount_currency="EUR",
    )

    assert found(*groups) == ([] if ":missing" in groups else ["pt_1"])


@pytest.mark.parametrize(
    "group", [":8482", ":rder", ":key", ":path", ":ew", ":ntwo", "=1234.5", "=-1234.50", "#1111", ":10", ":00", ":"]
)
def test_payment_is_not_found_by_other_terms(found: Found, group: str) -> None:
    metadata = {"key": "7f3", "path": r"c:\new", "text": "line\ntwo"}
    create_payment(
        description="Order 84820", metadata=json.dumps(metadata), amount=Decimal("10.00"), amount_currency="EUR"
    )

    assert found(group) == []


def test_metadata_of_any_type_has_words(found: Found) -> None:
    """The project may store payments by its own code."""
    metadata = r'{"number":84820,"flag":true,"none":null,"list":[7,"x"],"large":1e400}'
    create_payment(description="", metadata=metadata, details='{"cardNumber":42424242}')

    terms = (":84820", ":true", ":null", ":x", "#4242")
    assert [term for term in terms if found(term) != ["pt_1"]] == []
    assert found(":none") == []


NAMED = {
    "card": '{"cardHolder":"L. O\'Hara-Zo\u00eb","cardLabel":"Visa","cardNumber":"4242 42XX XXXX 2618"}',
    "consumer": r'{"consumerName":"Anna \\ \"Baker\" \u00c9\nCook","consumerAccount":"NL13TEST0123456789"}',
}


@pytest.mark.parametrize(
    ("details", "terms"),
    [
        ("card", (":l", ":o", ":hara", ":ZOË", ":har*")),
        ("consumer", (":anna", ":baker", ":é", ":cook")),
    ],
)
def test_payment_is_found_by_the_names_in_its_details(found: Found, details: str, terms: tuple[str, ...]) -> None:
    create_payment(description="", metadata="{}", details=NAMED[details])

    assert [term for term in terms if found(term) != ["pt_1"]] == []
    assert [term for term in (":nl13test0123456789", ":4242", ":cardholder", ":visa") if found(term)] == []


@pytest.mark.parametrize("value", ["null", "7", "[]", '{"a":"b"}', '""'])
def test_name_of_any_type_hinders_no_payment(found: Found, value: str) -> None:
    create_payment(description="Order 7", details=f'{{"cardHolder":{value},"cardLabel":"Visa"}}')

    assert (found(":order"), found(":null"), found(":cardholder")) == (["pt_1"], [], [])


@pytest.mark.parametrize(
    ("term", "payments"),
    [
        (":848*", ["pt_1", "pt_2"]),
        (":84820*", ["pt_1", "pt_2"]),
        (":848201*", ["pt_2"]),
        (":4820*", []),
        (":848", []),
        (":84820", ["pt_1"]),
        (":missing :848*", ["pt_1", "pt_2"]),
        (":ÉTÉ*", ["pt_1"]),
        (f":{LONG}*", []),
        (":o'848*", []),
    ],
)
def test_word_with_an_asterisk_finds_words_that_begin_with_it(found: Found, term: str, payments: list[str]) -> None:
    create_payment("pt_1", description="Order 84820 \u00e9t\u00e9s")
    create_payment("pt_2", description="", metadata='{"order":"848201"}')
    create_payment("pt_3", description="Order 7", test=True)

    assert found(term) == payments


@pytest.mark.also("citus")
def test_word_is_found_in_each_spelling(found: Found, documents: Path) -> None:
    """A line of the document has spellings of one word. Half of the payments have theirs in the metadata."""
    words: list[list[str]] = json.loads((documents / "spellings.json").read_text())
    for number, spelling in enumerate(chain.from_iterable(words)):
        text = f"x {spelling}!"
        texts = {"metadata": json.dumps({"a": text}), "description": ""} if number % 2 else {"description": text}
        create_payment(f"pt_{number}", **texts)

    numbers = count()
    for spellings in words:
        expected = sorted(f"pt_{number}" for number in islice(numbers, len(spellings)))
        assert [found(f":{spelling}") for spelling in spellings] == [expected] * len(spellings)


@pytest.mark.parametrize("words", [("café", "cafe"), ("naïve", "naive"), ("Straße", "strase"), ("żona", "zona")])
def test_other_letters_are_another_word(found: Found, words: tuple[str, str]) -> None:
    create_payment(description=words[0])

    assert found(f":{words[1]}") == []


def test_signs_separate_words_in_each_form(found: Found) -> None:
    signs = ["\u00b4", "\u2019", "\uff3c", "\ufe68", "\\", "=\u0338", "\u2260", "\u037e", "\uff02", "/\u0301"]
    for number, sign in enumerate(signs):
        text = f"rock{sign}n{sign}roll"
        create_payment(f"pt_{number:02}", description=text if number % 2 else "", metadata=json.dumps({"a": text}))

    expected = [f"pt_{number:02}" for number in range(len(signs))]
    assert [found(f":{word}") for word in ("n", "roll")] == [expected] * 2


# What folding changes. PostgreSQL may know later characters. It turns two backslashes into spaces.
FOLDED_CHARACTERS = [
    character
    for character in map(chr, range(0x80, 0x1F000))
    if folded(character) != character and character not in "\ufe68\uff3c"
]


def assert_folds_as_python(database: Any) -> None:
    with database.cursor() as cursor:
        query = f"SELECT {FOLD}(text) FROM unnest(%s::text[]) WITH ORDINALITY AS texts (text, number) ORDER BY number"  # noqa: S608
        cursor.execute(query, [FOLDED_CHARACTERS])
        assert [text for (text,) in cursor.fetchall()] == [*map(folded, FOLDED_CHARACTERS)]


@pytest.mark.only("postgresql", "citus")
def test_postgresql_folds_characters_as_python_does() -> None:
    assert_folds_as_python(connection)


@pytest.mark.only("postgresql")
def test_locale_of_the_database_does_not_matter() -> None:
    options: LiteralString = "LC_COLLATE 'C' LC_CTYPE 'C'"
    server = [os.environ["DATABASE_URL"]]
    with copied_database(server, copy_of="template0", options=options) as url, psycopg.connect(url) as database:
        database.execute(import_module("payments.migrations.0001_tables_8").fold_function().encode())
        assert_folds_as_python(database)


def test_negative_amount_is_found(found: Found) -> None:
    create_payment(amount=Decimal("-7.05"), amount_currency="EUR")

    assert found("=-7.05") == ["pt_1"]
    assert found("=7.05") == []


def test_card_is_found_by_its_last_four_digits_across_groups(found: Found) -> None:
    create_payment(details=AMEX)

    assert found("#2900") == ["pt_1"]


@pytest.mark.parametrize("values", [{"details": None}, {"details": "{}"}, {"details": '{"cardNumber":null}'}])
def test_payment_without_card_number_is_found_by_its_other_terms(found: Found, values: dict[str, Any]) -> None:
    create_payment(description="Order 7", **values)

    assert found(":7") == ["pt_1"]


def test_payment_without_words_is_found_by_its_amount(found: Found) -> None:
    create_payment(description="", metadata="{}")

    assert found("=10.00") == ["pt_1"]


def test_long_word_is_found(found: Found) -> None:
    create_payment(description=LONG)

    assert found(f":{LONG}") == ["pt_1"]


def test_payments_of_other_lists_are_not_found(found: Found) -> None:
    own = OrganizationFactory.create(id=1)
    create_payment("pt_1", organization=own, description="Order 7")
    create_payment("pt_2", organization=own, description="Order 7", test=True)
    create_payment("pt_3", organization=OrganizationFactory.create(id=11), description="Order 7")

    assert found(":7") == ["pt_1"]
    assert found(":7", mode=Mode.TEST) == ["pt_2"]
    assert found(":7", organization=11) == ["pt_3"]
    assert found(":7", organization=2) == []


def test_changed_payment_is_found_by_its_new_terms_only(found: Found) -> None:
    create_payment("pt_1", description="Order 7")
    Payment.objects.filter(id="pt_1").update(description="Order 8", amount=Decimal("2.00"), amount_currency="EUR")

    assert found(":7") == []
    assert found("=10.00") == []
    assert found(":8", "=2.00") == ["pt_1"]


def test_anonymized_payment_is_not_found_by_its_words(found: Found) -> None:
    create_payment("pt_1", description="For Zanzibar", metadata='{"name":"Quux"}', details=NAMED["card"])

    assert found(":zanzibar", ":quux", "#2618", ":hara") == ["pt_1"]
    anonymize_payments(Access(1, Mode.LIVE), on_progress=lambda _number: None)

    assert [group for group in (":zanzibar", ":quux", "#2618", ":hara", ":h*") if found(group)] == []
    assert found("=10.00") == ["pt_1"]


characters = st.characters(exclude_characters="\0", exclude_categories=["Cs", "Co"])
parts = st.sampled_from(
    ["order", "84820", " ", "-", '"', "\\", "\\n", "\n", "/", "é", "ß", "İ", "\u2028", "%", "'", LONG]
)
texts = st.text(characters, max_size=12) | st.lists(parts, max_size=5).map("".join)


@given(description=texts, metadata=st.dictionaries(texts, texts, max_size=3))
@settings(max_examples=examples(60, long=3_000), deadline=None)
def test_payment_is_found_by_each_of_its_words(description: str, metadata: dict[str, str]) -> None:
    with transaction.atomic():
        create_payment(description=description, metadata=json.dumps(metadata))
        expected = split_words(folded(" ".join([description, *metadata.values()])))

        for uses_index in (True, False):
            for word in expected:
                capitals = unicodedata.normalize("NFC", word).upper()
                assert ids_with(Access(1, Mode.LIVE), f":{capitals}", uses_index=uses_index) == ["pt_1"]
            assert ids_with(
                Access(1, Mode.LIVE), *(f":{word}" for word in expected[:10]), "=10.00", uses_index=uses_index
            ) == ["pt_1"]
        transaction.set_rollback(True)
