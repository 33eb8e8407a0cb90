"""Settings of a service with Django's own database backends, which have no time limits for requests."""

from payments_site.settings import *  # noqa: F403
from payments_site.settings import DATABASES as GUARDED

ENGINES = {
    "payments.database.postgresql": "django.db.backends.postgresql",
    "payments.database.sqlite": "django.db.backends.sqlite3",
}
DATABASES = {"default": {**GUARDED["default"], "ENGINE": ENGINES[GUARDED["default"]["ENGINE"]]}}
