"""The contract of every response below `/v2`: the form of each status, and nothing else in it."""

import json
import re
from collections.abc import Collection
from http import HTTPStatus
from typing import Any

from tests.support.exchange import Response

HAL = "application/hal+json"
PROBLEM = "application/problem+json"
METHODS = "GET, HEAD, OPTIONS"

# The rule of each parameter, in the words of its error.
TIME_RULE = "a date, or a time such as 2018-03-20T13:28:37.123, in UTC or with Z or an offset (whose + is %2B)"
AMOUNT_RULE = "a decimal with at most 13 digits before the point and 2 after it"
BOUNDS = [f"[{bound}]" for bound in ("gte", "gt", "lte", "lt")]
RULES = {
    "limit": "a whole number from 1 to 250",
    "from": "the ID of one of your payments",
    "sort": "desc or asc",
    "status": "open, pending, authorized, succeeded, failed, canceled, expired, or some of them, separated by commas",
    "method": "a word of 1 to 32 letters, digits, underscores or hyphens, or up to 20 of them, separated by commas",
    "customerId": (
        "a customer ID, ct_ and 1 to 61 letters, digits, underscores or hyphens, "
        "or up to 20 of them, separated by commas"
    ),
    "sequenceType": "oneoff, first, recurring, or some of them, separated by commas",
    "currency": "an ISO 4217 currency code, or up to 20 of them, separated by commas",
    **{f"{name}{bound}": TIME_RULE for name in ("createdAt", "paidAt") for bound in BOUNDS},
    **{f"amount{bound}": AMOUNT_RULE for bound in BOUNDS},
    "metadata": "at most 5 pairs, key and value of 1 to 500 characters each",
}
ADVICE = {
    *(f"Write {name}=VALUE." for name in ("status", "method", "customerId", "sequenceType", "currency")),
    *(f"Write {name}[gte]=TIME, or gt, lte, lt." for name in ("createdAt", "paidAt")),
    "Write amount[gte]=AMOUNT, or gt, lte, lt.",
    "Write metadata[KEY]=VALUE.",
}
RANGES = [
    f"{name}[{upper}] must be at or {side} {name}[{lower}]."
    for name, side in (("createdAt", "after"), ("paidAt", "after"), ("amount", "above"))
    for lower in ("gte", "gt")
    for upper in ("lte", "lt")
]

# These are all details of errors. So an error repeats no input, except a plain key of metadata.
METADATA_KEY = re.compile(r"metadata\[[A-Za-z0-9_.$\[\]-]+\](?= must )")
DETAILS = {
    400: {
        *(f"{name} must be {rule}." for name, rule in RULES.items()),
        *(f"{name} must occur only once." for name in RULES),
        *(f"amount{bound} must be used together with currency." for bound in BOUNDS),
        *RANGES,
        *ADVICE,
        "from must be a token from a link of your changes, or now.",
        "Unknown parameter.",
        "Send at most 200 parameters.",
        "This host is not allowed. Check the URL, or add the host to ALLOWED_HOSTS.",
        "This request is malformed. Check the Host header and the URL.",
    },
    401: {"Send an API key: Authorization: Bearer <API_KEY>.", "This API key is invalid."},
    403: {"This needs an API key with the scope import."},
    404: {"Not found. Check the path and the ID."},
    405: {"Only GET, HEAD and OPTIONS are allowed.", "Only POST and OPTIONS are allowed."},
    406: {"The Accept header excludes application/hal+json."},
}
PLAIN_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_.$\[\]-]{0,31}")
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

# The headers that a response may have, and their values. The server adds the last three.
ALLOWED_HEADERS = {
    "content-type": re.compile(rf"{re.escape(HAL)}|{re.escape(PROBLEM)}"),
    "content-length": re.compile("[0-9]+"),
    "allow": re.compile(f"{METHODS}|POST, OPTIONS"),
    "www-authenticate": re.compile(
        'Bearer realm="payments"(, error="(invalid_token|insufficient_scope", scope="import)")?'
    ),
    "etag": re.compile('"[0-9a-f]{32}-[0-9a-f]{32}"'),
    "cache-control": re.compile("private, no-cache|no-store"),
    "vary": re.compile("Accept, Authorization"),
    "x-content-type-options": re.compile("nosniff"),
    "x-request-id": REQUEST_ID,
    "date": re.compile("[A-Za-z0-9:, ]+"),
    "server": re.compile("granian"),
    "connection": re.compile("close"),
}
REQUIRED_HEADERS = {
    200: {"content-type", "etag", "cache-control", "vary"},
    304: {"etag", "cache-control", "vary"},
    400: {"content-type", "cache-control"},
    401: {"content-type", "cache-control", "www-authenticate"},
    403: {"content-type", "cache-control", "www-authenticate"},
    404: {"content-type", "cache-control"},
    405: {"content-type", "cache-control", "allow"},
    406: {"content-type", "cache-control"},
}
REQUIRED_HEADERS_OF_OPTIONS = {"content-type", "allow"}

# The limit and the start of a page, then the other parameters, percent-encoded.
ENCODED = "[A-Za-z0-9._~%-]+"
PAGE_QUERY = rf"limit=[1-9][0-9]*(&from=pt_[A-Za-z0-9]+)?(&{ENCODED}={ENCODED})*"

PROBLEM_KEYS = ["type", "title", "status", "detail", "field", "requestId", "_links"]
PAGE_KEYS = ["count", "_embedded", "_links"]
PAGE_LINKS = ["self", "previous", "next", "documentation"]
CHANGES_LINKS = ["self", "next", "later", "documentation"]
CHANGES_QUERY = "limit=[1-9][0-9]*(&from=[A-Za-z0-9_-]+)?"
RECORD_LINKS = ["self", "dashboard", "documentation"]


def assert_meets_contract(response: Response, *, method: str, base: str) -> Any:
    """Check a response whose links start with `base`. Return its document; None if it has no body."""
    assert response.status in REQUIRED_HEADERS, f"unexpected status {response.status}"
    assert_headers(response, method)
    if method == "HEAD" or response.status == HTTPStatus.NOT_MODIFIED:
        assert response.body == b""
        return None
    document = json.loads(response.body)
    if response.status != HTTPStatus.OK:
        assert_problem(document, response.status, base)
    elif "timeZone" in document:
        assert_keys(document, ["count", "timeZone", "_embedded", "_links"])
    elif "count" in document:
        assert_page(document, base)
    elif "id" in document:
        assert_record(document, base)
    else:
        assert method == "OPTIONS"
    return document


def assert_headers(response: Response, method: str) -> None:
    names = [name.lower() for name, _ in response.headers]
    assert len(set(names)) == len(names), f"repeated header: {names}"
    for name, value in response.headers:
        pattern = ALLOWED_HEADERS.get(name.lower())
        assert pattern is not None, f"unexpected header: {name}"
        assert pattern.fullmatch(value), f"{name}: {value}"
        is_error = response.status >= HTTPStatus.BAD_REQUEST
        assert name.lower() != "cache-control" or value == ("no-store" if is_error else "private, no-cache")
    required = REQUIRED_HEADERS[response.status]
    if method == "OPTIONS" and response.status == HTTPStatus.OK:
        required = REQUIRED_HEADERS_OF_OPTIONS
    assert required <= set(names), f"missing: {required - set(names)}"
    if "content-type" in names:
        assert response.header("Content-Type") == (HAL if response.status == HTTPStatus.OK else PROBLEM)


def assert_problem(document: Any, status: int, base: str) -> None:
    assert_keys(document, PROBLEM_KEYS, optional={"field", "requestId"})
    assert document["type"] == "about:blank"
    assert document["title"] == HTTPStatus(status).phrase
    assert document["status"] == status
    assert METADATA_KEY.sub("metadata", document["detail"]) in DETAILS[status]
    assert PLAIN_NAME.fullmatch(document.get("field", "x"))
    assert REQUEST_ID.fullmatch(document.get("requestId", "x"))
    assert document["_links"] == {"documentation": section(base, "errors")}


def assert_page(page: Any, base: str) -> None:
    assert_keys(page, PAGE_KEYS)
    assert page["count"] == len(page["_embedded"]["payments"])
    if "later" in page["_links"]:
        assert_keys(page["_links"], CHANGES_LINKS, optional={"next"})
        assert page["_links"].get("next", page["_links"]["later"]) == page["_links"]["later"]
        assert_page_links(page["_links"], rf"{re.escape(base)}/v2/payments/changes\?{CHANGES_QUERY}")
        assert page["_links"]["documentation"] == section(base, "list-changes")
    else:
        assert_keys(page["_links"], PAGE_LINKS, optional={"previous", "next"})
        assert_page_links(page["_links"], rf"{re.escape(base)}/v2/payments\?{PAGE_QUERY}")
        assert page["_links"]["documentation"] == section(base, "list-payments")
    for record in page["_embedded"]["payments"]:
        assert_record(record, base)


def assert_page_links(links: dict[str, dict[str, str]], pattern: str) -> None:
    """Check all links except the last one, which leads to the documentation."""
    for relation in links.keys() - {"documentation"}:
        href = links[relation]["href"]
        assert links[relation] == link(href, HAL)
        assert re.fullmatch(pattern, href), href


def assert_record(record: Any, base: str) -> None:
    assert_keys(record["_links"], RECORD_LINKS)
    assert record["_links"]["self"] == link(f"{base}/v2/payments/{record['id']}", HAL)
    assert record["_links"]["dashboard"]["href"].startswith(f"{base}/admin/")
    assert record["_links"]["documentation"] == section(base, "payment-record")


def section(base: str, anchor: str) -> dict[str, str]:
    """Return the link to a section of the reference."""
    return link(f"{base}/docs/reference/#{anchor}", "text/html")


def assert_keys(document: dict[str, Any], keys: list[str], *, optional: Collection[str] = ()) -> None:
    """Check that a document has these keys, in this order."""
    assert list(document) == [key for key in keys if key in document or key not in optional]


def link(href: str, media_type: str) -> dict[str, str]:
    return {"href": href, "type": media_type}
