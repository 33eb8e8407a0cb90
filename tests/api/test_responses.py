"""A response whose header fields are valid has the same attributes as Django's."""

import pytest
from django.http import HttpResponse

from payments.api.responses import ApiResponse, list_fields, set_fields

pytestmark = pytest.mark.also("citus")


def test_response_has_the_attributes_of_django() -> None:
    ours = ApiResponse(404, {"X-Number": "1", "Content-Type": "text/plain"}, b"absent")
    djangos = HttpResponse(b"absent", "text/plain", 404, headers={"X-Number": "1"})

    assert vars(ours).keys() == vars(djangos).keys()
    assert ours.serialize() == djangos.serialize()
    assert (ours.reason_phrase, ours.charset, ours.closed) == ("Not Found", djangos.charset, False)


def test_field_replaces_the_one_with_the_same_name() -> None:
    response = ApiResponse(200, {"ETag": "a", "Allow": "GET"})

    set_fields(response, {"etag": "b"})

    assert list_fields(response) == [("etag", "b"), ("Allow", "GET")]
    assert response["ETag"] == "b"
