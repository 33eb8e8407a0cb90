"""The Accept header: HAL under several names, or 406."""

from collections.abc import Callable
from functools import partial

import pytest

from payments.api.renderers import cached_media_type, parse_accept
from tests.support.api import BROWSER, Api
from tests.support.growth import LINEAR_MAX, growth

pytestmark = pytest.mark.once

JAVA = "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"


@pytest.mark.parametrize(
    "accept",
    [
        "application/hal+json",
        "application/json",
        "application/*",
        "*/*",
        "",
        " ",
        "APPLICATION/HAL+JSON",
        "application/json; charset=utf-8",
        "application/json;indent=4",
        "application/hal+json, application/json;q=0.9, */*;q=0.8",
        "text/html, application/json;q=0.1",
        "application/json, */*;q=0",
        "application/json, application/*;q=0",
        "application/json;q=0, */*",
        'application/json;x="a,b;q=0"',
        "application/json;x*=unheard-of''y",
        "application/json;q=0.3333",
        JAVA,
        BROWSER,
    ],
)
def test_header_that_accepts_json_gets_hal(api: Api, accept: str) -> None:
    response = api.send("GET", "/v2/payments", Accept=accept)

    assert response.status_code == 200
    assert response["Content-Type"] == "application/hal+json"


def test_missing_header_gets_hal(api: Api) -> None:
    assert api.get()["Content-Type"] == "application/hal+json"


@pytest.mark.parametrize(
    "accept",
    [
        "text/html",
        "application/xml",
        "application/problem+json",
        "image/*",
        "nonsense",
        ",",
        "*/*;q=0",
        "application/hal+json;q=0",
        "application/hal+json;q=0.0, application/json",
        "application/json;q=0",
        "application/*;q=0, */*",
        "application/json;q=abc",
        "application/json;q=nan",
        "application/json;q=2",
        "application/json;q=-1",
        "application/json;q=1_0",
        "application/json;q=.",
        "application/json;q",
    ],
)
def test_header_that_excludes_json_and_hal_is_refused(api: Api, accept: str) -> None:
    response = api.send("GET", "/v2/payments", Accept=accept)

    assert response.status_code == 406
    assert response["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("quoted", [";", '\\"'])
def test_time_to_parse_a_header_is_linear(quoted: str) -> None:
    def parse(factor: int) -> Callable[[], object]:
        return partial(parse_accept, f'application/json;x="{quoted * (2_000 * factor)}')

    assert growth(parse) < LINEAR_MAX


def test_long_header_is_not_cached(api: Api) -> None:
    cached = cached_media_type.cache_info().currsize

    api.send("GET", "/v2/payments", Accept=f"application/json;x={'a' * 1000}")

    assert cached_media_type.cache_info().currsize == cached
