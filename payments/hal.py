"""The form of a HAL document (draft-kelly-json-hal): links, and a page of embedded resources."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

HAL: Final = "application/hal+json"
HTML: Final = "text/html"


class Link(Struct, frozen=True):
    """A URL and the media type of its document."""

    href: str
    type: Literal["application/hal+json", "text/html"]


def page(relation: str, resources: Sequence[Any], *, links: Mapping[str, Link | None]) -> dict[str, Any]:
    """Return the document of a page. A link that is None is omitted: HAL has no null link."""
    return {
        "count": len(resources),
        "_embedded": {relation: resources},
        "_links": {name: link for name, link in links.items() if link is not None},
    }
