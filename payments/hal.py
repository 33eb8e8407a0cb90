"""The links of a HAL document (draft-kelly-json-hal)."""

from typing import Final, Literal

from msgspec import Struct

HAL: Final = "application/hal+json"
PROBLEM: Final = "application/problem+json"  # RFC 9457
HTML: Final = "text/html"


class Link(Struct, frozen=True):
    """A URL and the media type of its document."""

    href: str
    type: Literal["application/hal+json", "text/html"]
