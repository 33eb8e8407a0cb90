"""Django's own backend: it asks in every request whether the connection still serves, and plans are made anew."""

from payments_site.settings import *  # noqa: F403
from payments_site.settings import DATABASES

DATABASES["default"]["ENGINE"] = "django.db.backends.postgresql"
