"""The WSGI entry point: `payments_site.wsgi:application`."""

import gc
import os

import django
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "payments_site.settings")
django.setup(set_prefix=False)

from payments.service import telemetry  # noqa: E402  what it needs is set up now
from payments.service.handler import Handler  # noqa: E402

telemetry.begin()
application = Handler()

# Everything that is there now stays: the garbage collector need not look through it again and again.
get_resolver().url_patterns  # noqa: B018
gc.collect()
gc.freeze()
