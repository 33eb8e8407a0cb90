"""The WSGI entry point: `payments_site.wsgi:application`."""

import gc
import os

import django
from django.conf import settings
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "payments_site.settings")
django.setup(set_prefix=False)

# These modules need Django's settings and applications.
from payments.runtime.process import process  # noqa: E402
from payments.runtime.processors import keep_processor  # noqa: E402
from payments.service import telemetry  # noqa: E402
from payments.service.handler import Handler  # noqa: E402

process.rate_limits.open()  # without the rate limit file, the service does not start
keep_processor(process.processor_locks, workers=settings.WEB_WORKERS)
telemetry.register_tracing()
process.hooks.worker_started()
application = Handler()

# All objects so far live as long as the process, so the garbage collector need not check them.
get_resolver().url_patterns  # noqa: B018
gc.collect()
gc.freeze()
