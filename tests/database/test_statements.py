"""Statements are compiled once for each shape of a request, and refuse what cannot be compiled."""

import cProfile
import pstats
from collections.abc import Callable

import pytest
from django.db import connection

from payments.database.statements import Placeholder, compile_queryset
from payments.models import Payment
from tests.support.api import Api

pytestmark = pytest.mark.django_db


def compiler_calls(function: Callable[[], object]) -> set[str]:
    """Return the functions of Django's SQL compiler that run."""
    profile = cProfile.Profile()
    profile.runcall(function)
    functions = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    return {name for file, _, name in functions if file.endswith("django/db/models/sql/compiler.py")}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "path",
    [
        "/v2/payments",
        "/v2/payments?from=pt_1",
        "/v2/payments?status=open&metadata[a]=b",
        "/v2/payments/changes",
        "/v2/payments/pt_1",
    ],
)
def test_repeated_request_compiles_nothing(api: Api, path: str) -> None:
    for _ in range(2):
        api.get(path)

    assert not compiler_calls(lambda: api.get(path))
    assert compiler_calls(Payment.objects.exists)


@pytest.mark.django_db(transaction=True)
def test_request_works_on_a_new_connection(api: Api) -> None:
    before = api.get()
    connection.close()

    assert (before.status_code, api.get().status_code) == (200, 200)


CANNOT_BE_COMPILED = "Only placeholders and columns without a converter can be compiled: SELECT"


def test_value_without_a_placeholder_is_refused() -> None:
    with pytest.raises(ValueError, match=CANNOT_BE_COMPILED):
        compile_queryset(Payment.objects.filter(id="pt_1").values_list("id"))


@pytest.mark.only("sqlite")
def test_column_with_a_converter_is_refused() -> None:
    with pytest.raises(ValueError, match=CANNOT_BE_COMPILED):
        compile_queryset(Payment.objects.filter(id=Placeholder("id")).values_list("created_at", "amount"))
