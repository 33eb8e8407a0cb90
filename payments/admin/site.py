"""The admin site: the start page shows the figures of a period, and the login limits attempts."""

from http import HTTPStatus
from math import ceil
from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from payments.admin.login import LoginForm
from payments.admin.overview import overview_context

UNUSED_URLS = ("autocomplete", "view_on_site")


class PaymentsAdminSite(AdminSite):
    """Django's admin site with our start page, login form and navigation."""

    site_header = site_title = "Payments"
    index_title = "Overview"
    index_template = "admin/overview.html"
    site_url = None
    enable_nav_sidebar = False  # the page header has the navigation, so that the list gets the whole width
    login_form = LoginForm

    def get_urls(self) -> list[Any]:
        """Return Django's URLs without those that our pages do not use: they read objects of any model."""
        return [url for url in super().get_urls() if getattr(url, "name", None) not in UNUSED_URLS]

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        response = super().login(request, extra_context)
        form = getattr(response, "context_data", {}).get("form")
        if form is not None and form.wait_seconds:
            response.status_code = HTTPStatus.TOO_MANY_REQUESTS
            response.headers["Retry-After"] = str(ceil(form.wait_seconds))
        return response

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        context = overview_context(request) if request.user.has_perm("payments.view_payment") else {}
        return super().index(request, {**(extra_context or {}), **context})
