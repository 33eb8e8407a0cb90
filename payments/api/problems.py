"""The error body of the API (RFC 9457)."""

from http import HTTPStatus

from django.http import HttpRequest
from msgspec import UNSET, Struct, UnsetType
from rest_framework.request import Request

from payments.api import request_ids
from payments.api.links import Links
from payments.hal import HTML, Link


class ProblemLinks(Struct, frozen=True):
    """The links of an error."""

    documentation: Link


class Problem(Struct, kw_only=True, frozen=True, rename={"links": "_links", "request_id": "requestId"}):
    """An error, for programs and humans. `field` names the invalid parameter, `requestId` the request in the log."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    field: str | UnsetType = UNSET
    request_id: str | UnsetType = UNSET
    links: ProblemLinks


def problem(request: HttpRequest | Request, status: int, detail: str, *, field: str | None = None) -> Problem:
    """Return the body of an error response.

    It repeats nothing that the client sent, except a parameter's short name and the request ID.
    """
    return Problem(
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        field=field or UNSET,
        request_id=request.META.get(request_ids.ENVIRON_KEY, UNSET),
        links=ProblemLinks(documentation=Link(href=Links.of_error(request).section("errors"), type=HTML)),
    )
