"""Factories of organizations, API keys and payments. Nothing in them is random: IDs and times count up.

A trait sets the mode, the status or the method of a payment: `PaymentFactory(test=True, failed=True, ideal=True)`.
"""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, cast

import factory
from factory.django import DjangoModelFactory

from payments.models import ApiKey, Mode, Organization, Payment, SequenceType, Status

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

CARD = '{"cardCountryCode":"NL","cardHolder":"A. Baker","cardLabel":"Visa","cardNumber":"4242 42XX XXXX 4242"}'
DETAILS = {"creditcard": CARD, "ideal": '{"consumerName":"B. Cook"}', "paypal": None, "banktransfer": None}


class OrganizationFactory(DjangoModelFactory[Organization]):
    """An organization."""

    class Meta:
        model = Organization

    id = factory.Sequence(lambda n: 1001 + n)
    name = factory.LazyAttribute(lambda organization: f"Organization {organization.id}")


class ApiKeyFactory(DjangoModelFactory[ApiKey]):
    """An API key. Its attribute `text` is the text that a client sends (see `tests.support.api.key_text`)."""

    class Meta:
        model = ApiKey

    organization = factory.SubFactory(OrganizationFactory)
    mode = Mode.LIVE
    name = "Tests"
    last_used_at = factory.LazyFunction(lambda: datetime.now(UTC))

    class Params:
        test = factory.Trait(mode=Mode.TEST)

    @classmethod
    def _create(cls, model_class: type[ApiKey], *args: Any, **values: Any) -> ApiKey:
        columns = {name: values.pop(name) for name in ("last_used_at", "revoked_at") if name in values}
        key, text = ApiKey.objects.issue(values.pop("organization"), **values)
        for name, value in columns.items():
            setattr(key, name, value)
        key.save()
        vars(key)["text"] = text
        return key


class PaymentFactory(DjangoModelFactory[Payment]):
    """A payment: by card and succeeded, unless a test sets other values."""

    class Meta:
        model = Payment

    id = factory.Sequence(lambda n: f"pt_{n:08}")
    organization = factory.SubFactory(OrganizationFactory)
    mode = Mode.LIVE
    amount = Decimal("10.00")
    amount_currency = "EUR"
    description = factory.Sequence(lambda n: f"Order {n}")
    method = "creditcard"
    status = Status.SUCCEEDED
    sequence_type = SequenceType.ONEOFF
    details = factory.LazyAttribute(lambda payment: DETAILS.get(payment.method))
    created_at = factory.Sequence(lambda n: NOON + timedelta(milliseconds=n))
    paid_at = factory.LazyAttribute(
        lambda payment: payment.created_at + timedelta(seconds=7) if payment.status == Status.SUCCEEDED else None
    )

    class Params:
        live = factory.Trait(mode=Mode.LIVE)
        test = factory.Trait(mode=Mode.TEST)
        open = factory.Trait(status=Status.OPEN)
        pending = factory.Trait(status=Status.PENDING)
        authorized = factory.Trait(status=Status.AUTHORIZED)
        succeeded = factory.Trait(status=Status.SUCCEEDED)
        failed = factory.Trait(status=Status.FAILED)
        canceled = factory.Trait(status=Status.CANCELED)
        expired = factory.Trait(status=Status.EXPIRED)
        creditcard = factory.Trait(method="creditcard")
        ideal = factory.Trait(method="ideal")
        paypal = factory.Trait(method="paypal")
        banktransfer = factory.Trait(method="banktransfer")
        recurring = factory.Trait(sequence_type=SequenceType.RECURRING)

    @classmethod
    def _generate(cls, strategy: str, params: dict[str, Any]) -> Payment:
        """Give each trait a value. For a trait without one, factory_boy formats all declarations, which is slow."""
        traits = dict.fromkeys(cls._meta.parameters, False)
        return cast("Payment", super()._generate(strategy, traits | params))  # type: ignore[no-untyped-call]
