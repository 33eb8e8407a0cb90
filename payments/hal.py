"""The shape of a HAL document (draft-kelly-json-hal): links and a page of embedded resources. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

HAL: Final = "application/hal+json"
HTML: Final = "text/html"


class Link(Struct, frozen=True):
    """Where something is, and as what it comes."""

    href: str
    type: Literal["application/hal+json", "text/html"]


def page(relation: str, resources: Sequence[Any], *, links: Mapping[str, Link | None]) -> dict[str, Any]:
    """Return a page of `resources`. A link that leads nowhere is left out: HAL has no null link."""
    return {
        "count": len(resources),
        "_embedded": {relation: resources},
        "_links": {name: link for name, link in links.items() if link is not None},
    }
