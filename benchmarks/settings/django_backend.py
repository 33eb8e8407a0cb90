"""Django's own PostgreSQL backend, which checks the connection at every request and plans every statement."""

from payments_site.settings import *  # noqa: F403
from payments_site.settings import DATABASES

DATABASES["default"]["ENGINE"] = "django.db.backends.postgresql"
