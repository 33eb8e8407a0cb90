"""The API in one process, as a client with a key uses it."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.test import Client

from payments.models import ApiKey

# What a client calls its request: by itself an answer would have another id each time.
REQUEST_ID = "tests-1"

# The Accept header of a browser.
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@dataclass
class Api:
    """Sends requests with a key."""

    client: Client
    key: ApiKey

    @property
    def authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {key_text(self.key)}"}

    def get(self, path: str = "/v2/payments", /, **parameters: Any) -> Any:
        """Ask for a page or a record. A parameter's underscore at its end is dropped: `from` is a word of Python's."""
        query = {name.removesuffix("_"): value for name, value in parameters.items()}
        return self.client.get(path, query, headers=self.authorization)

    def send(self, method: str, path: str, **headers: str) -> Any:
        """Send a request; a header's underscores stand for hyphens, and one given here replaces the key's."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.generic(method, path, headers=self.authorization | given)

    def follow(self, href: str) -> Any:
        parts = urlsplit(href)
        return self.client.get(f"{parts.path}?{parts.query}", headers=self.authorization)

    def walk(self, relation: str, page: Any) -> list[Any]:
        """Return `page` and all that follow it by links of that name."""
        pages = [page]
        while link := pages[-1]["_links"].get(relation):
            response = self.follow(link["href"])
            assert response.status_code == 200, response.content
            pages.append(response.json())
        return pages


def key_text(key: ApiKey) -> str:
    """Return what a client sends, which the factory leaves on the key that it made."""
    text: str = vars(key)["text"]
    return text


def ids(*pages: Any) -> list[str]:
    """Return the ids of the payments in `pages`, in order."""
    return [payment["id"] for page in pages for payment in page["_embedded"]["payments"]]
