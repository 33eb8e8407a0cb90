"""The WSGI entry point: `payments_site.wsgi:application`."""

import gc
import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "payments_site.settings")
try:
    django = get_wsgi_application()
except ImproperlyConfigured as error:  # Granian's workers print the message without a traceback
    sys.exit(str(error))

# These modules need Django's settings and applications.
from payments.runtime.process import process
from payments.service import telemetry
from payments.service.handler import Handler

process.rate_limits.open()  # without the rate limit file, the service does not start
telemetry.register_tracing()
process.hooks.worker_started()
application = Handler(django)

# All objects so far live as long as the process, so the garbage collector need not check them.
get_resolver().url_patterns  # noqa: B018
gc.collect()
gc.freeze()
