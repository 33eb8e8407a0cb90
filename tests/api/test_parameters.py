"""The query string, split into names and values."""

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments.api.parameters import split_query

pytestmark = pytest.mark.once


@given(st.text("ab1=&;%+é#?", max_size=20))
def test_query_is_split_as_by_the_standard_library(query: str) -> None:
    wsgi = query.encode().decode("latin-1")

    assert split_query(wsgi) == parse_qsl(query, keep_blank_values=True, errors="surrogateescape")
