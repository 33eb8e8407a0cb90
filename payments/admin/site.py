"""The admin site: the start page shows the figures of a period, and the login limits attempts."""

from typing import Any, cast
from urllib.parse import urlsplit

from django.contrib.admin import AdminSite
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from payments import __version__
from payments.access.clients import client_address
from payments.admin.login import (
    LoginForm,
    TooManyAttempts,
    began_with_password,
    lacks_second_factor,
    limits_of_user,
    mark_as_limited,
    password_attempt,
)
from payments.admin.overview.views import overview_context
from payments.admin.report import month_report
from payments.admin.scope import NOTHING
from payments.admin.switcher import Switcher
from payments.api.errors import RETRY_SECONDS
from payments.conf import conf

UNUSED_URLS = ("autocomplete", "view_on_site")
PASSWORD_URLS = ("password_change", "password_change_done")

# The models of the page header, in this order.
NAVIGATION = ("Payment", "Organization", "ApiKey", "User", "PaymentRead", "ImportRun")


class PaymentsAdminSite(AdminSite):
    """Django's admin site with our start page, login form and navigation."""

    site_header = site_title = "Payments"
    index_title = "Overview"
    index_template = "admin/overview.html"
    site_url = None
    enable_nav_sidebar = False  # the page header has the navigation, so that the list gets the whole width

    @property
    def login_form(self) -> type[LoginForm]:  # type: ignore[override]
        if conf.SECOND_FACTOR == "off":
            return LoginForm
        from payments.admin.sign_in.second_factor import FirstFactorForm  # noqa: PLC0415  imports django-allauth

        return FirstFactorForm

    def get_urls(self) -> list[Any]:
        """Return Django's URLs without those that our pages do not use: they read objects of any model."""
        unused = UNUSED_URLS if conf.PASSWORD_LOGIN else (*UNUSED_URLS, *PASSWORD_URLS)
        report = path("report/", self.admin_view(month_report), name="month_report")
        return [
            report,
            *sign_in_urls(),
            *(url for url in super().get_urls() if getattr(url, "name", None) not in unused),
        ]

    def has_permission(self, request: HttpRequest) -> bool:
        return super().has_permission(request) and not lacks_second_factor(request)

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        context, switcher = super().each_context(request), Switcher(request)
        return {
            **context,
            "release": __version__,
            "switcher": switcher,
            "sees_nothing": context["has_permission"] and switcher.scope == NOTHING,
            "navigation": navigation(context["available_apps"]),
            "sign_in": sign_in_context(request),
        }

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if request.method != "GET" and not conf.PASSWORD_LOGIN:
            raise PermissionDenied
        response = super().login(request, extra_context)
        form = getattr(response, "context_data", {}).get("form")
        if form is None:
            return response
        if form.second_factor_user:
            from payments.admin.sign_in import pages, second_factor  # noqa: PLC0415  needs the site

            next_url = pages.safe_next(request, request.POST.get("next"))
            second_factor.begin_login(request, form.second_factor_user, next_url=next_url)
            return HttpResponseRedirect(reverse("admin:second_factor"))
        if form.wait_seconds:
            mark_as_limited(response, form.wait_seconds)
        return response

    def password_change(  # type: ignore[override]  # also another response
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Limit the attempts of a client that has the session of a user, but not the password."""
        if request.method in {"GET", "HEAD"}:
            return super().password_change(request, extra_context)
        address = client_address(request.META)
        limits = limits_of_user(cast("User", request.user), kind="password", address=address)
        try:
            with password_attempt(limits, address=address):
                return super().password_change(request, extra_context)
        except TooManyAttempts as error:
            from payments.admin.sign_in import pages  # noqa: PLC0415  needs the site

            response = pages.page(request, "refusal", title="Password not changed", message=str(error))
            mark_as_limited(response, error.wait_seconds)
            return response

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """Show the figures of a period. While some are missing, the browser loads the page again by itself."""
        context = overview_context(request) if request.user.has_perm("payments.view_payment") else {}
        response = super().index(request, {**(extra_context or {}), **context})
        if context.get("goes_on"):
            response.headers["Refresh"] = str(RETRY_SECONDS)
        return response


def sign_in_urls() -> list[URLPattern]:
    urls = []
    if conf.OIDC_ISSUER:
        from payments.admin.sign_in import single_sign_on  # noqa: PLC0415  imports django-allauth

        urls += [
            path("sign-in/", single_sign_on.redirect_to_provider, name="sign_in"),
            path("sign-in/callback/", single_sign_on.callback, name="sign_in_callback"),
        ]
    if conf.SECOND_FACTOR != "off":
        from payments.admin.sign_in import second_factor_views as views  # noqa: PLC0415  imports django-allauth

        urls += [
            path("second-factor/", views.enter_code, name="second_factor"),
            path("second-factor/set-up/", views.set_up, name="second_factor_set_up"),
            path("second-factor/change/", views.change, name="second_factor_change"),
        ]
    return urls


def sign_in_context(request: HttpRequest) -> dict[str, Any]:
    """Return how users log in, and whether this user can have a second factor."""
    return {
        "has_passwords": conf.PASSWORD_LOGIN,
        "has_provider": bool(conf.OIDC_ISSUER),
        "provider_name": conf.OIDC_NAME or urlsplit(conf.OIDC_ISSUER).hostname,
        "has_second_factor": conf.SECOND_FACTOR != "off" and began_with_password(request),
    }


def navigation(apps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    models = {model["object_name"]: model for app in apps for model in app["models"] if model["admin_url"]}
    return [models[name] for name in NAVIGATION if name in models]
