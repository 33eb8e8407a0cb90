"""The site's addresses: the way in, probes, the API, its documentation, the admin."""

from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.templatetags.static import static
from django.urls import include, path

from payments.handlers import nothing_here
from payments.root import root
from payments_site.health import alive, ready


def favicon(request: HttpRequest) -> HttpResponse:
    """Lead browsers, which ask for it whatever a page says, to the picture of the site."""
    return HttpResponseRedirect(static("documentation/icon.svg"))


urlpatterns = [
    path("", root, name="root"),
    path("favicon.ico", favicon),
    path("healthz", alive),
    path("readyz", ready),
    path("v2", nothing_here),
    path("v2/", include("payments.urls")),
    path("docs/", include("payments_site.documentation.urls")),
    path("admin/", admin.site.urls),
]

if settings.METRICS:
    from payments_site.telemetry import metrics

    urlpatterns.append(path("metrics", metrics.page))

handler400 = "payments.handlers.bad_request"
handler403 = "payments.handlers.permission_denied"
handler404 = "payments.handlers.not_found"
handler500 = "payments.handlers.server_error"
