"""The settings of the application `payments`, with their defaults. They are read when they are first used.

A project sets them in its Django settings, with the prefix `PAYMENTS_`: `PAYMENTS_RATE_LIMIT = (600, 60)`.
"""

import os
import tempfile
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar, cast
from zoneinfo import available_timezones

from django.conf import settings
from django.core.signals import setting_changed

# Names of the system's database of time zones that name no place.
NOT_ZONES = {"Factory", "localtime"}

T = TypeVar("T")


class Setting(Generic[T]):
    """A setting and its default, or a function that returns the default."""

    def __init__(self, default: T | Callable[[], T]) -> None:
        self.default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> T:
        """Return the value, and keep it in the instance until a test changes a setting."""
        try:
            value = cast("T", getattr(settings, f"PAYMENTS_{self.name}"))
        except AttributeError:
            value = self.default() if callable(self.default) else self.default
        vars(instance)[self.name] = value
        return value


def is_time_zone(name: str) -> bool:
    """Return whether a text is the name of a time zone in IANA's database.

    The search for all names takes 40 ms. The default does not need it, so a start does not wait for it.
    """
    return name == "UTC" or name in time_zone_names()


@lru_cache
def time_zone_names() -> Sequence[str]:
    return sorted(available_timezones() - NOT_ZONES)


def private_directory() -> Path:
    return Path(tempfile.gettempdir()) / f"payments-{os.geteuid()}"


class Settings:
    """All settings of the application."""

    # Links begin with this URL, or with the host of the request.
    PUBLIC_BASE_URL = Setting("")

    # The addresses that a reverse proxy sets in headers are used for clients' shares and limits.
    TRUST_PROXY = Setting(False)  # noqa: FBT003

    # The maximum number of requests of a key, and in how many seconds; None: no limit.
    RATE_LIMIT = Setting[tuple[int, int] | None](None)

    # The directory with the counts of rate limits and with metrics, which only its owner can read.
    RUNTIME_DIRECTORY = Setting[Path](private_directory)

    # All statements of a request together end after this time. The engines of `payments.database` enforce it.
    REQUEST_SECONDS_MAX = Setting(2.5)

    # The requests that a worker handles at a time. Slow work uses only shares of them.
    WEB_THREADS = Setting(5)

    # A replica that lags by more is not read.
    REPLICA_LAG_SECONDS_MAX = Setting(10)

    # A read of some data that fails sooner has not occupied its thread for long. After others, reads of the data fail
    # fast.
    OUTAGE_SECONDS_MIN = Setting(0.5)
    OUTAGE_OPEN_SECONDS = Setting(0.2)

    # The time zone of new organizations, whose days totals use.
    DEFAULT_TIME_ZONE = Setting("UTC")

    # Whether browsers get pages of DRF's browsable API.
    BROWSABLE_API = Setting[bool](lambda: bool(settings.DEBUG))  # type: ignore[has-type]

    # An import writes its records in batches of so many, and refuses a longer record or line, so that it does not fill
    # the memory.
    IMPORT_BATCH_RECORDS = Setting(5000)
    IMPORT_VALUE_BYTES_MAX = Setting(2**24)

    # An import over the API ends after this time. The time begins before the body arrives.
    IMPORT_SECONDS_MAX = Setting(30)

    # A part of an export takes a worker a tenth of a second, during which its other requests wait.
    EXPORT_PART_ROWS = Setting(5000)

    # A list of more payments is not summed payment by payment.
    SUMMED_PAYMENTS_MAX = Setting(10_000)

    # A session of the admin that is not used for so long ends (`payments.admin.sessions`).
    SESSION_IDLE_SECONDS = Setting(3600)

    # How staff sign in (docs/sign-in.md).
    PASSWORD_LOGIN = Setting(True)  # noqa: FBT003
    SECOND_FACTOR = Setting("off")
    OIDC_ISSUER = Setting("")
    OIDC_CLIENT_ID = Setting("")
    OIDC_CLIENT_SECRET = Setting("")
    OIDC_NAME = Setting("")
    OIDC_EMAIL_DOMAINS = Setting[Collection[str]](())
    OIDC_REQUIRED_CLAIM = Setting[Any](None)
    OIDC_NEW_USER_GROUP = Setting("")
    OIDC_ROLE_CLAIM = Setting("")
    OIDC_ORGANIZATIONS_CLAIM = Setting("")

    # For `payments.service`.
    ACCESS_LOG = Setting(False)  # noqa: FBT003
    METRICS = Setting(False)  # noqa: FBT003
    TRACING = Setting(False)  # noqa: FBT003

    # Sentences that each command prints first.
    SETTINGS_WARNINGS = Setting[Collection[str]](())


conf = Settings()


def forget_values(**_change: Any) -> None:
    vars(conf).clear()


setting_changed.connect(forget_values)
