"""The admin's own site: a form to log in that is limited, and a start page with the last thirty days."""

from http import HTTPStatus
from math import ceil
from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from payments.admin.login import LoginForm
from payments.admin.overview import overview_context


class Site(AdminSite):
    """Where staff look into payments."""

    site_header = site_title = "Payments"
    index_title = "The last 30 days"
    index_template = "admin/overview.html"
    site_url = None
    enable_nav_sidebar = False  # its place is the list's; what it leads to stands at the head of each page
    login_form = LoginForm

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        response = super().login(request, extra_context)
        form = getattr(response, "context_data", {}).get("form")
        if form is not None and form.wait_seconds:
            response.status_code = HTTPStatus.TOO_MANY_REQUESTS
            response.headers["Retry-After"] = str(ceil(form.wait_seconds))
        return response

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        shown = overview_context(request) if request.user.has_perm("payments.view_payment") else {}
        return super().index(request, {**(extra_context or {}), **shown})
