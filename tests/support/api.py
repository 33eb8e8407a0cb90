"""A client of the API in this process."""

from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit

from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpResponse
from django.test import Client, RequestFactory

from payments.models import ApiKey
from payments.service.handler import Handler

# The ID that each request sends. Without it, each response has another ID.
REQUEST_ID = "tests-1"

# The Accept header of a browser.
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@dataclass
class Api:
    """Sends requests with an API key."""

    client: Client
    key: ApiKey

    @property
    def authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {key_text(self.key)}"}

    def get(self, path: str = "/v2/payments", /, **parameters: Any) -> Any:
        """Return the response to a GET request. A parameter may end in `_`, as `from` is a keyword of Python."""
        query = {name.removesuffix("_"): value for name, value in parameters.items()}
        return self.client.get(path, query, headers=self.authorization)

    def send(self, method: str, path: str, **headers: str) -> Any:
        """Return the response to a request. In names of headers, `_` stands for `-`."""
        extra = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.generic(method, path, headers=self.authorization | extra)

    def import_lines(self, lines: Iterable[bytes]) -> Any:
        """Import records, which must be valid, with a key of scope `import`. Return the counts."""
        body, headers = b"\n".join(lines), self.authorization | {"Content-Type": "application/x-ndjson"}
        response = self.client.generic("POST", "/v2/payments/imports", body, "application/x-ndjson", headers=headers)
        assert response.status_code == 200, response.content
        return response.json()

    def follow(self, href: str) -> Any:
        parts = urlsplit(href)
        return self.client.get(f"{parts.path}?{parts.query}", headers=self.authorization)

    def walk(self, relation: str, page: Any) -> list[Any]:
        """Return `page` and the pages that follow it by links of that relation."""
        pages = [page]
        while link := pages[-1]["_links"].get(relation):
            response = self.follow(link["href"])
            assert response.status_code == 200, response.content
            pages.append(response.json())
        return pages


def key_text(key: ApiKey) -> str:
    """Return the text of a key that `ApiKeyFactory` made. The database does not store it."""
    text: str = vars(key)["text"]
    return text


def payment_ids(*pages: Any) -> list[str]:
    """Return the IDs of the payments in `pages`, in their order."""
    return [payment["id"] for page in pages for payment in page["_embedded"]["payments"]]


def wsgi_application() -> Any:
    """Return the WSGI application of a worker that starts now."""
    return Handler(WSGIHandler())


def call_wsgi(application: Any, environ: dict[str, Any]) -> HttpResponse:
    """Return the response of a WSGI application."""
    answers: list[Any] = []
    body = b"".join(application({**environ}, lambda *status_and_fields: answers.extend(status_and_fields)))
    status, fields = answers
    return HttpResponse(body, status=int(status.split()[0]), headers=dict(fields))


def status_of(path: str, application: Any = None, /, **headers: str) -> tuple[str, dict[str, str]]:
    """Return the status and the headers of the deployed application's response."""
    environ = {**RequestFactory().get(path, headers=headers).environ, "wsgi.input": BytesIO()}
    response = call_wsgi(application or wsgi_application(), environ)
    return str(response.status_code), dict(response.items())
