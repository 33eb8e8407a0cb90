"""The WSGI entry point."""

import os

from django.core.wsgi import get_wsgi_application

os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.peers.stock_drf.settings"

application = get_wsgi_application()
