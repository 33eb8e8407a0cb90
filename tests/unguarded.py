"""Settings of a service that has Django's own database backends, which wait as long as a database has them wait."""

from payments_site.settings import *  # noqa: F403
from payments_site.settings import DATABASES as GUARDED

ENGINES = {
    "payments_site.postgresql": "django.db.backends.postgresql",
    "payments_site.sqlite": "django.db.backends.sqlite3",
}
DATABASES = {"default": {**GUARDED["default"], "ENGINE": ENGINES[GUARDED["default"]["ENGINE"]]}}
