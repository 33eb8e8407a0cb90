"""Settings of a service that has Django's own database backends, which wait as long as a database has them wait."""

from payments_site.settings import *  # noqa: F403
from payments_site.settings import DATABASES as GUARDED

ENGINES = {
    "payments.database.postgresql": "django.db.backends.postgresql",
    "payments.database.sqlite": "django.db.backends.sqlite3",
}
DATABASES = {"default": {**GUARDED["default"], "ENGINE": ENGINES[GUARDED["default"]["ENGINE"]]}}
