"""Settings of a service whose requests are measured for coverage.

Granian answers requests in threads that Python did not start. Coverage does not see these threads by itself.
"""

import sys
import threading
from collections.abc import Callable

from django.apps import AppConfig
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from payments_site.settings import *  # noqa: F403
from payments_site.settings import INSTALLED_APPS as USUAL


class Covered(AppConfig):
    name = "tests"

    def ready(self) -> None:
        from payments.service.handler import around  # noqa: PLC0415  it reads the settings

        around.append(measured)


def measured(request: HttpRequest, *, by: Callable[[HttpRequest], HttpResponseBase]) -> HttpResponseBase:
    """Answer the request, and measure this thread from now on."""
    if sys.gettrace() is None:
        sys.settrace(threading.gettrace())
    return by(request)


INSTALLED_APPS = [*USUAL, "tests.support.covered.Covered"]
