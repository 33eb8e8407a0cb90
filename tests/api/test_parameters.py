"""The query string, split into names and values."""

from urllib.parse import parse_qsl

import pytest
from django.http import HttpRequest
from django.test import AsyncRequestFactory, Client, RequestFactory
from hypothesis import given
from hypothesis import strategies as st

from payments.api.parameters import query_string, split_query

pytestmark = pytest.mark.once


@given(st.text("ab1=&;%+é#?", max_size=20))
def test_query_is_split_as_by_the_standard_library(query: str) -> None:
    assert split_query(query) == parse_qsl(query, keep_blank_values=True, errors="surrogateescape")


QUERY = "metadata[city]=Œuf,é"


@pytest.mark.parametrize(
    "request_",
    [
        RequestFactory().get("/", QUERY_STRING=QUERY.encode().decode("latin-1")),
        AsyncRequestFactory().get("/", QUERY_STRING=QUERY),
    ],
    ids=["WSGI", "ASGI"],
)
def test_query_string_with_characters_that_are_not_encoded_is_text(request_: HttpRequest) -> None:
    assert query_string(request_.META) == QUERY


def test_many_parameters_without_a_key_are_refused_like_others(client: Client, db: None) -> None:
    response = client.get(f"/v2/payments?{'status=open&' * 5000}")

    assert (response.status_code, response["WWW-Authenticate"]) == (401, 'Bearer realm="payments"')
