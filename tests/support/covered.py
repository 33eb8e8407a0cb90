"""Settings that measure the coverage of a service's requests.

Granian runs requests in threads that Python did not start. Coverage does not measure these threads by itself.
"""

import sys
import threading
from collections.abc import Callable

from django.apps import AppConfig
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from payments.runtime.hooks import Hook
from payments_site.settings import *  # noqa: F403
from payments_site.settings import INSTALLED_APPS as USUAL


class Covered(AppConfig):
    name = "tests"

    def ready(self) -> None:
        from payments.runtime.process import process  # noqa: PLC0415  it reads the settings, which this module defines

        process.hooks.register(CoverageHook())


class CoverageHook(Hook):
    """Measures the coverage of each thread that responds to a request."""

    def request(self, request: HttpRequest, respond: Callable[[HttpRequest], HttpResponseBase]) -> HttpResponseBase:
        if sys.gettrace() is None:
            sys.settrace(threading.gettrace())
        return respond(request)


INSTALLED_APPS = [*USUAL, "tests.support.covered.Covered"]
