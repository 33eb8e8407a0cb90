"""The site's addresses: the API, its documentation, the admin."""

from django.contrib import admin
from django.urls import include, path
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerSplitView

from payments.handlers import nothing_here

urlpatterns = [
    path("v2", nothing_here),
    path("v2/", include("payments.urls")),
    path("docs/", SpectacularSwaggerSplitView.as_view(url_name="openapi"), name="documentation"),
    path("docs/openapi.json", SpectacularJSONAPIView.as_view(), name="openapi"),
    path("admin/", admin.site.urls),
]

handler400 = "payments.handlers.bad_request"
handler403 = "payments.handlers.permission_denied"
handler404 = "payments.handlers.not_found"
handler500 = "payments.handlers.server_error"
