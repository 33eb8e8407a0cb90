"""The one error body (RFC 9457)."""

from http import HTTPStatus

from django.http import HttpRequest
from msgspec import UNSET, Struct, UnsetType
from rest_framework.request import Request

from payments.hal import HTML, Link
from payments.links import Addresses
from payments.runtime import request_ids


class ProblemLinks(Struct, frozen=True):
    """Where errors are explained."""

    documentation: Link


class Problem(Struct, kw_only=True, frozen=True, rename={"links": "_links", "request_id": "requestId"}):
    """What went wrong, for a program and for a person; `field` names the parameter at fault, where it is one.

    By `request_id` the service's operators find the request in their log.
    """

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    field: str | UnsetType = UNSET
    request_id: str | UnsetType = UNSET
    links: ProblemLinks


def problem(request: HttpRequest | Request, status: int, detail: str, *, field: str | None = None) -> Problem:
    """Return the body of an answer that says `detail`.

    It never repeats what the client sent, but for a parameter's short name and the request's id.
    """
    return Problem(
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        field=field or UNSET,
        request_id=request.META.get(request_ids.ENVIRON_KEY, UNSET),
        links=ProblemLinks(documentation=Link(href=Addresses.of_refusal(request).documentation, type=HTML)),
    )
