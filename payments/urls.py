"""The URLs of the application: the API below `v2/`, and its documentation. A project includes them at any path."""

from django.urls import include, path

from payments.api.error_pages import api_not_found

app_name = "payments"

urlpatterns = [
    path("v2", api_not_found),
    path("v2/", include("payments.api.urls")),
    path("docs/", include("payments.docs.urls")),
]
