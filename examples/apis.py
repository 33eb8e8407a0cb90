"""HTTP APIs that need a key. A request that fails for a while is repeated."""

import json
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.client import HTTPException
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPErrorProcessor, Request, build_opener

from pages import printable, refuse

RETRY_SECONDS = (0.5, 1, 2, 4, 8, 16)  # waits before a request is repeated, unless the response has Retry-After
RETRY_SECONDS_MAX = 3600
TIMEOUT_SECONDS = 60

Parameters: TypeAlias = Mapping[str, str | int | list[str]]


class Failure(Exception):
    """The run cannot continue. A later run does its work."""


class EveryStatus(HTTPErrorProcessor):
    """Returns responses with any status. So redirects are not followed: they might carry the token to another host."""

    def http_response(self, request: Request, response: Any) -> Any:
        return response

    https_response = http_response


OPENER = build_opener(EveryStatus)


class Response(NamedTuple):
    """The response to a request. The status is 0 if there was none, and then the document is the reason."""

    status: int
    headers: Mapping[str, str]
    document: Any

    @property
    def is_temporary(self) -> bool:
        is_incomplete = self.status == HTTPStatus.OK and self.document is None
        return self.status in (0, HTTPStatus.TOO_MANY_REQUESTS) or self.status >= 500 or is_incomplete  # noqa: PLR2004

    def retry_after(self, *, otherwise: float) -> float:
        """Return the seconds of Retry-After, which may also be a time."""
        value = self.headers.get("Retry-After", "").strip()
        if re.fullmatch("[0-9]{1,9}", value):
            return int(value)
        with suppress(ValueError, TypeError, KeyError):
            seconds = (parsedate_to_datetime(value) - parsedate_to_datetime(self.headers["Date"])).total_seconds()
            return max(seconds, 0)
        return otherwise


@dataclass
class Api:
    """An HTTP API. A request that fails for a while is repeated."""

    name: str
    url: str
    variable: str  # has the token
    headers: Mapping[str, str] = field(default_factory=dict)
    now: datetime | None = None  # when it responded first, by its own clock

    def __post_init__(self) -> None:
        self.token = os.environ.get(self.variable, "").strip()
        if not re.fullmatch("[!-~]+", self.token):
            raise Failure(f"Set {self.variable} to a key without spaces.")

    def get(self, path: str, parameters: Parameters) -> Any:
        """Return a document; None if it does not exist."""
        response = self.send(f"{path}?{urlencode(parameters, doseq=True)}")
        if response.status not in (HTTPStatus.OK, HTTPStatus.NOT_FOUND):
            raise self.failure(response)
        return response.document if response.status == HTTPStatus.OK else None

    def send(self, target: str, body: bytes | None = None) -> Response:
        for seconds in (*RETRY_SECONDS, None):
            response = self.attempt(target, body)
            if not response.is_temporary:
                self.now = self.now or time_of(response)
                return response
            wait = response.retry_after(otherwise=seconds or 0)
            if seconds is None or wait > RETRY_SECONDS_MAX:
                break
            time.sleep(wait)
        raise self.failure(response)

    def attempt(self, target: str, body: bytes | None) -> Response:
        authorization = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/x-ndjson"}
        headers = {**authorization, **self.headers}
        request = Request(f"{self.url}{target}", body, headers=headers)  # noqa: S310  it has an `address`
        try:
            with OPENER.open(request, timeout=TIMEOUT_SECONDS) as response:
                return Response(response.status, response.headers, document_of(response.read()))
        except (OSError, HTTPException) as error:
            return Response(0, {}, printable(str(getattr(error, "reason", error)) or type(error).__name__))

    def failure(self, response: Response) -> Failure:
        """Return the failure of a request. A provider's own words might contain the key."""
        if response.status == 0:
            return Failure(f"{self.name} cannot be reached: {response.document}.")
        if response.status == HTTPStatus.UNAUTHORIZED:
            return Failure(f"{self.name} refuses the key in {self.variable}. Correct it.")
        return Failure(f"{self.name} responded with the status {response.status}.")


def document_of(content: bytes) -> Any:
    """Return the JSON document; None if it is invalid or incomplete."""
    try:
        return json.loads(content, parse_constant=refuse)
    except (ValueError, RecursionError):
        return None


def time_of(response: Response) -> datetime | None:
    try:
        return parsedate_to_datetime(response.headers["Date"])
    except (KeyError, TypeError, ValueError):
        return None


def address(value: str) -> str:
    """Return the URL of an API without a final slash.

    :raises ValueError: it is no URL, or it has a user, a query or a fragment
    """
    parts = urlsplit(value)
    has_host = parts.hostname and parts.port != 0
    if not has_host or not re.fullmatch(r"https?://[!-~]+", value) or re.search(r"[@?#\\]", value):
        raise ValueError(value)
    return value.rstrip("/")
