"""Settings of a service that waits only briefly for the body of an import."""

from payments_site.settings import *  # noqa: F403

PAYMENTS_IMPORT_SECONDS_MAX = 4
