"""A new connection for each request."""

from payments_site.settings import *  # noqa: F403
from payments_site.settings import DATABASES

DATABASES["default"]["CONN_MAX_AGE"] = 0
