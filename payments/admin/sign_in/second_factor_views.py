"""The pages of the second factor: enter a code, set up an authenticator app, change it."""

import logging
from collections.abc import Callable
from typing import Any, cast

from allauth.mfa.adapter import get_adapter
from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import mark_safe
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from payments.access.clients import client_address
from payments.admin.login import (
    TooManyAttempts,
    began_with_password,
    count_attempt,
    end_sessions,
    limits_of_user,
    mark_as_limited,
)
from payments.admin.sign_in.pages import page
from payments.admin.sign_in.second_factor import (
    SECRET,
    PendingLogin,
    accept_code,
    accept_first_code,
    complete_login,
    find_pending_login,
    generate_secret,
    has_second_factor,
    recovery_codes_left,
    remove,
    renew_recovery_codes,
)
from payments.conf import conf

View = Callable[[HttpRequest], HttpResponse]

CODE_CHARACTERS_MAX = 20

WRONG_CODE = "This code is wrong, or it was used already. Wait for the next code of your app."

logger = logging.getLogger(__name__)


class CodeForm(forms.Form):
    """A code of the authenticator app, or a recovery code."""

    code = forms.CharField(
        max_length=CODE_CHARACTERS_MAX,
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code", "inputmode": "numeric", "autofocus": True}),
    )
    wait_seconds = 0.0

    def accepted(self, request: HttpRequest, user: User, accept: Callable[[str], Any]) -> Any:
        """Return the result of `accept` for the code, or None with an error in the form."""
        if not self.is_valid():
            return None
        address = client_address(request.META)
        try:
            count_attempt(limits_of_user(user, kind="code", address=address), address=address)
        except TooManyAttempts as error:
            self.wait_seconds = error.wait_seconds
            self.add_error(None, str(error))
            return None
        result = accept(self.cleaned_data["code"])
        if not result:
            logger.warning("A wrong code for user %s from %s.", user.pk, address)
            self.add_error("code", WRONG_CODE)
        return result

    def page(self, request: HttpRequest, name: str, **context: Any) -> HttpResponse:
        response = page(request, name, form=self, **context)
        if self.wait_seconds:
            mark_as_limited(response, self.wait_seconds)
        return response


def code_view(view: View) -> View:
    """Return a view that shows and reads a code, which nothing may store."""
    return never_cache(sensitive_post_parameters()(require_http_methods(["GET", "POST"])(view)))


def form_of(request: HttpRequest) -> CodeForm:
    return CodeForm(request.POST if request.method == "POST" else None, label_suffix="")


@code_view
def enter_code(request: HttpRequest) -> HttpResponse:
    """Ask for the code of a login whose password was right, then log the user in."""
    pending = find_pending_login(request)
    if pending is None:
        return HttpResponseRedirect(reverse("admin:login"))
    if not has_second_factor(pending.user):
        return HttpResponseRedirect(reverse("admin:second_factor_set_up"))
    form, before = form_of(request), recovery_codes_left(pending.user)
    if request.method == "POST" and form.accepted(request, pending.user, lambda code: accept_code(pending.user, code)):
        complete_login(request, pending.user)
        if (left := recovery_codes_left(pending.user)) < before:
            messages.warning(request, f"You used a recovery code: {left} are left. Renew them under Second factor.")
        return HttpResponseRedirect(pending.next_url)
    return form.page(request, "enter_code", title="Enter your code")


@code_view
def set_up(request: HttpRequest) -> HttpResponse:
    """Set up an authenticator app, for a logged-in user or for a login that needs one. Then show the recovery codes."""
    subject = find_subject(request)
    if subject is None:
        return HttpResponseRedirect(reverse("admin:login"))
    user, next_url = subject
    if has_second_factor(user):  # the password alone must not replace it
        return HttpResponseRedirect(reverse("admin:second_factor_change"))
    secret = request.session.setdefault(SECRET, generate_secret())
    form = form_of(request)
    if request.method == "POST":
        try:
            codes = form.accepted(request, user, lambda code: accept_first_code(user, code, secret=secret))
        except IntegrityError:  # the form was sent twice at once
            return HttpResponseRedirect(reverse("admin:second_factor_change"))
        if codes:
            logger.warning("User %s has set up a second factor.", user.pk)
            complete_login(request, user)
            end_sessions(user, except_key=request.session.session_key)  # they began without a second factor
            return codes_page(request, codes, next_url=next_url)
    address = get_adapter().build_totp_url(user, secret)
    _, tag, drawing = get_adapter().build_totp_svg(address).partition("<svg")
    return form.page(
        request,
        "set_up",
        title="Set up a second factor",
        secret=" ".join(secret[start : start + 4] for start in range(0, len(secret), 4)),
        address=address,
        cancel_url=reverse("admin:index" if request.user.is_authenticated else "admin:login"),
        picture=mark_safe(tag + drawing),  # noqa: S308  drawn by qrcode
    )


@code_view
def change(request: HttpRequest) -> HttpResponse:
    """Renew the recovery codes or remove the second factor of the logged-in user. Both need a code."""
    if find_pending_login(request) or not admin.site.has_permission(request) or not began_with_password(request):
        return HttpResponseRedirect(reverse("admin:second_factor"))
    user = cast("User", request.user)
    if not has_second_factor(user):
        return HttpResponseRedirect(reverse("admin:second_factor_set_up"))
    form = form_of(request)
    can_remove = conf.SECOND_FACTOR == "optional"
    if request.method == "POST" and form.accepted(request, user, lambda code: accept_code(user, code)):
        if "remove" in request.POST and can_remove:
            remove(user)
            logger.warning("User %s has removed the second factor.", user.pk)
            messages.success(request, "Your second factor is removed.")
            return HttpResponseRedirect(reverse("admin:index"))
        return codes_page(request, renew_recovery_codes(user), next_url=reverse("admin:index"))
    return form.page(request, "change", title="Second factor", can_remove=can_remove)


def find_subject(request: HttpRequest) -> PendingLogin | None:
    """Return the user who sets up a second factor, and the address to continue at."""
    if pending := find_pending_login(request):
        return pending
    if admin.site.has_permission(request) and began_with_password(request):
        return PendingLogin(cast("User", request.user), reverse("admin:index"))
    return None


def codes_page(request: HttpRequest, codes: list[str], *, next_url: str) -> HttpResponse:
    return page(request, "recovery_codes", title="Save your recovery codes", codes=codes, next_url=next_url)
