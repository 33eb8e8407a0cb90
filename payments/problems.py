"""The one error body (RFC 9457)."""

from http import HTTPStatus

from msgspec import UNSET, Struct, UnsetType

from payments.addresses import Addresses
from payments.hal import HTML, Link


class ProblemLinks(Struct, frozen=True):
    """Where errors are explained."""

    documentation: Link


class Problem(Struct, kw_only=True, frozen=True, rename={"links": "_links"}):
    """What went wrong, for a program and for a person; `field` names the parameter at fault, where it is one."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    field: str | UnsetType = UNSET
    links: ProblemLinks


def problem(status: int, detail: str, *, addresses: Addresses, field: str | None = None) -> Problem:
    """Return the body that says `detail`. It never repeats what the client sent, but for a parameter's short name."""
    return Problem(
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        field=field or UNSET,
        links=ProblemLinks(documentation=Link(href=addresses.documentation, type=HTML)),
    )
