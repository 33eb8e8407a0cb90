"""The lines that production would log."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from payments.service.logs import Brevity, JSONLines, Redaction, RequestId


class Log(logging.Handler):
    """Collects the lines."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JSONLines())
        for log_filter in (RequestId(), Redaction(), Brevity()):
            self.addFilter(log_filter)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


@contextmanager
def collected_log() -> Iterator[Log]:
    handler = Log()
    loggers = [logging.getLogger(), logging.getLogger("django")]  # the latter does not propagate
    for logger in loggers:
        logger.addHandler(handler)
    yield handler
    for logger in loggers:
        logger.removeHandler(handler)
