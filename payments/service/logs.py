"""The log: one JSON object per line in production, readable lines in development, and no secrets in either."""

import json
import logging
import re
from collections.abc import Callable, Hashable, Iterable
from datetime import UTC, datetime
from http import HTTPStatus
from math import inf
from threading import Lock
from time import monotonic

from payments.api import request_ids

# A client chooses the path or the name of a parameter in the message.
REFUSAL_CHARACTERS_MAX = 500

# How often a line about the same failure is written.
REPETITION_SECONDS = 1

# A character of an e-mail address.
EMAIL_CHARACTER = r"[^\s@%<>\"'=:,;()\[\]{}\\]"

# Secrets, also percent-encoded in URLs, and their replacements. Numbers as long as a card number are redacted, but not
# the IDs of requests and traces. The text can be a path of 64 kB that a client chose, so lookbehinds and bounded
# repetitions keep the search linear.
SECRETS = (
    (re.compile(r"(live|test)_[A-Za-z0-9]{16,}"), r"\1_[redacted]"),
    (re.compile(r"\b(bearer|basic)(?:[ +]|%20)+[^\s\"',]+", re.IGNORECASE | re.UNICODE), r"\1 [redacted]"),
    (re.compile(r"(://[^\s:/@]{0,64}:)[^\s/]{1,256}@"), r"\1[redacted]@"),
    (
        re.compile(rf"(?<!{EMAIL_CHARACTER}){EMAIL_CHARACTER}+(?:@|%40){EMAIL_CHARACTER}{{1,253}}\.[A-Za-z]{{2,}}"),
        "[redacted]",
    ),
    (
        re.compile(
            r"\b(\w{0,32}password|\w{0,32}secret(?:_key)?|sessionid|csrftoken)\b([\"']?\s{0,8}[=:]\s{0,8})"
            r"(?:\"[^\"]*\"|'[^']*'|[^\s&;,]+)",
            re.IGNORECASE | re.UNICODE,
        ),
        r"\1\2[redacted]",
    ),
    (
        re.compile(
            r"(\b[0-9a-f]{32}\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b)"
            r"|(?<![0-9])[0-9](?:(?:[ ./_+-]|%20)?[0-9]){12,18}(?![0-9])"
        ),
        lambda match: match[1] or "[redacted]",
    ),
)


def redacted(text: str) -> str:
    """Return `text` without API keys, credentials, e-mail addresses and card numbers."""
    for pattern, replacement in SECRETS:
        text = pattern.sub(replacement, text)
    return text


class Repetition(logging.Filter):
    """Passes one record of each kind per second, with the number of further ones since the last.

    Otherwise, an outage would write a line for each request. It limits only some loggers, and no traceback of a bug.
    Records are of the same kind if they come from the same line of code and have errors of the same class.
    """

    def __init__(self, *, loggers: Iterable[str], clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self.loggers = frozenset(loggers)
        self.clock = clock
        self.lock = Lock()
        self.last: dict[Hashable, tuple[float, int]] = {}  # the time of the last line, and how many were dropped since

    def filter(self, record: logging.LogRecord) -> bool:
        status = vars(record).get("status_code")
        if record.name not in self.loggers or status == HTTPStatus.INTERNAL_SERVER_ERROR:
            return True
        kind = (record.pathname, record.lineno, status, *error_classes(record))
        with self.lock:
            now = self.clock()
            passed_at, dropped = self.last.get(kind, (-inf, 0))
            is_repeated = now - passed_at < REPETITION_SECONDS
            self.last[kind] = (passed_at, dropped + 1) if is_repeated else (now, 0)
        if dropped and not is_repeated:
            record.msg = f"{record.msg} ({dropped} more since the last line like this)"
        return not is_repeated


def error_classes(record: logging.LogRecord) -> list[type]:
    """Return the classes of the errors in a record. psycopg has one for each SQLSTATE."""
    values = [*(record.exc_info or ()), *(record.args if isinstance(record.args, tuple) else ())]
    return [type(value.__cause__ or value) for value in values if isinstance(value, BaseException)]


class Redaction(logging.Filter):
    """Redacts the message and the traceback of a log record."""

    formatter = logging.Formatter()

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            message = record.getMessage()
        except (TypeError, ValueError):  # the arguments do not fit the format
            message = f"{record.msg} {record.args}"
        record.msg, record.args = redacted(message), None
        if record.exc_info:
            record.exc_text = redacted(record.exc_text or self.formatter.formatException(record.exc_info))
        return True


class Brevity(logging.Filter):
    """Leaves only the tracebacks of bugs. A refused request is no error of the service; an outage is one line."""

    def filter(self, record: logging.LogRecord) -> bool:
        status = vars(record).get("status_code", HTTPStatus.INTERNAL_SERVER_ERROR)
        if HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR:
            record.levelno, record.levelname = logging.WARNING, "WARNING"
            record.msg = record.msg[:REFUSAL_CHARACTERS_MAX]
        elif status > HTTPStatus.INTERNAL_SERVER_ERROR and record.exc_info:
            record.msg = f"{record.msg}: {redacted(str(record.exc_info[1]))}"
        if status != HTTPStatus.INTERNAL_SERVER_ERROR:
            record.exc_info = record.exc_text = None
        return True


class RequestId(logging.Filter):
    """Adds the ID of the current request to a log record; `-` outside of requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = redacted(request_ids.current.get())
        return True


class JSONLines(logging.Formatter):
    """Writes these six fields only: other attributes of a record could contain anything."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": vars(record).get("request_id", "-"),
        }
        if record.exc_text:
            line["traceback"] = record.exc_text
        return json.dumps(line)
