"""Terms of payments, by which PostgreSQL finds them: the conditions select the same payments as the exact filters."""

import json

import pytest
from django.db import transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from payments.models import Access, Mode, Payment
from tests.support.factories import OrganizationFactory, PaymentFactory
from tests.support.lists import read_page
from tests.support.scale import examples

pytestmark = pytest.mark.django_db

LONG = "x" * 200  # longer than a term

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=12)
parts = st.sampled_from(['", "', '": "', '"', "\\", "{}", "[]", " ", "a", "%", "'", "\u2028", "é", LONG])
hostile_texts = texts | st.lists(parts, min_size=1, max_size=2).map("".join)


def ids_with(access: Access, parameters: dict[str, str]) -> list[str]:
    return read_page(access, parameters).ids


@given(st.dictionaries(hostile_texts, hostile_texts, min_size=1, max_size=4))
@settings(max_examples=examples(60, long=3_000))
def test_payment_is_found_by_each_of_its_metadata_pairs(metadata: dict[str, str]) -> None:
    with transaction.atomic():
        organization = OrganizationFactory.create()
        payment = PaymentFactory.create(organization=organization, metadata=json.dumps(metadata))
        access = Access(organization.pk, Mode.LIVE)

        assert ids_with(access, {f"metadata[{name}]": text for name, text in metadata.items()}) == [payment.id]
        for name, text in metadata.items():
            assert ids_with(access, {f"metadata[{name}]": text}) == [payment.id]
            assert ids_with(access, {f"metadata[{name}]": f"{text}x"}) == []
        transaction.set_rollback(True)


@pytest.mark.parametrize(
    ("metadata", "parameters"),
    [
        ({"a": "method creditcard"}, {"method": "ideal"}),
        ({"a": f"{LONG}1"}, {"metadata[a]": f"{LONG}2"}),
        ({f"{LONG}1": "a"}, {f"metadata[{LONG}2]": "a"}),
        ({"a": "1", "b": "2"}, {"metadata[a]": "2"}),
        ({"a": '1", "b": "2'}, {"metadata[b]": "2"}),
        ({"currency": "USD"}, {"currency": "USD"}),
    ],
)
def test_payment_is_not_found_by_similar_terms(metadata: dict[str, str], parameters: dict[str, str]) -> None:
    payment = PaymentFactory.create(metadata=json.dumps(metadata))

    assert ids_with(Access(payment.organization_id, Mode.LIVE), parameters) == []


@pytest.mark.parametrize(
    "parameters",
    [{"metadata[order]": "7"}, {"method": "ideal"}, {"status": "failed,expired"}, {"currency": "CHF"}],
)
def test_payments_of_other_lists_are_not_found(parameters: dict[str, str]) -> None:
    own = OrganizationFactory.create(id=1)
    others = [(OrganizationFactory.create(id=11), Mode.LIVE), (own, Mode.TEST)]
    for organization, mode in others:
        PaymentFactory.create(
            organization=organization,
            mode=mode,
            metadata='{"order":"7"}',
            method="ideal",
            failed=True,
            amount=1,
            amount_currency="CHF",
        )

    assert ids_with(Access(own.pk, Mode.LIVE), parameters) == []
    assert Payment.objects.count() == len(others)
