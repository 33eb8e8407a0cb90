"""The contract's error document, as the API in this process returns it."""

from typing import Any

from tests.support.api import REQUEST_ID


def problem(status: int, title: str, detail: str, *, field: str | None = None) -> dict[str, Any]:
    """Return the error document, its members in the contract's order."""
    return {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail,
        **({"field": field} if field else {}),
        "requestId": REQUEST_ID,
        "_links": {"documentation": {"href": "http://testserver/docs/reference/#errors", "type": "text/html"}},
    }


def assert_problem(response: Any, expected: dict[str, Any]) -> None:
    assert response.status_code == expected["status"]
    assert response["Content-Type"] == "application/problem+json"
    assert response.json() == expected
    assert list(response.json()) == list(expected)
