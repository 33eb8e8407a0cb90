"""The site's addresses: the way in, probes, the API, its documentation, the admin."""

from collections.abc import Callable
from functools import cache
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.templatetags.static import static
from django.urls import include, path
from django.utils.module_loading import import_string

from payments.handlers import nothing_here
from payments.root import root
from payments_site.health import alive, ready


def loaded_when_asked(view: str, **options: Any) -> Callable[[HttpRequest], HttpResponseBase]:
    """Return a view of drf-spectacular's, which takes 4 MB in a worker and for which most are never asked."""

    @cache
    def loaded() -> Any:
        return import_string(f"drf_spectacular.views.{view}").as_view(**options)

    def answer(request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = loaded()(request)
        return response

    return answer


def favicon(request: HttpRequest) -> HttpResponse:
    """Lead browsers, which ask for it whatever a page says, to the picture of the site."""
    return HttpResponseRedirect(static("payments_site/favicon.svg"))


urlpatterns = [
    path("", root, name="root"),
    path("favicon.ico", favicon),
    path("healthz", alive),
    path("readyz", ready),
    path("v2", nothing_here),
    path("v2/", include("payments.urls")),
    path("docs/", loaded_when_asked("SpectacularSwaggerSplitView", url_name="openapi"), name="documentation"),
    path("docs/openapi.json", loaded_when_asked("SpectacularJSONAPIView"), name="openapi"),
    path("admin/", admin.site.urls),
]

handler400 = "payments.handlers.bad_request"
handler403 = "payments.handlers.permission_denied"
handler404 = "payments.handlers.not_found"
handler500 = "payments.handlers.server_error"
