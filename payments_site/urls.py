"""All URLs except those of static files: the root, probes, the API, its documentation, the admin, metrics."""

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.templatetags.static import static
from django.urls import include, path

from payments.api.views import root
from payments.conf import conf
from payments.docs.views import llms
from payments.service.health import alive, ready


def favicon(request: HttpRequest) -> HttpResponse:
    """Redirect to the icon of the site: browsers request this path for every page."""
    return HttpResponseRedirect(static("docs/icon.svg"))


urlpatterns = [
    path("", root, name="root"),
    path("favicon.ico", favicon),
    path("healthz", alive),
    path("readyz", ready),
    path("llms.txt", llms),
    path("", include("payments.urls")),
    path("admin/", admin.site.urls),
]

if conf.METRICS:
    from payments.service.telemetry import metrics

    urlpatterns.append(path("metrics", metrics.metrics_page))

handler400 = "payments.service.error_pages.bad_request"
handler403 = "payments.service.error_pages.permission_denied"
handler404 = "payments.service.error_pages.page_not_found"
handler500 = "payments.service.error_pages.server_error"
