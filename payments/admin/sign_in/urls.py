"""The URLs of the sign-in that the settings need, below those of the admin."""

from django.conf import settings
from django.urls import URLPattern, path


def sign_in_urls() -> list[URLPattern]:
    urls = []
    if settings.OIDC_ISSUER:
        from payments.admin.sign_in import single_sign_on  # noqa: PLC0415  imports django-allauth

        urls += [
            path("sign-in/", single_sign_on.begin, name="sign_in"),
            path("sign-in/callback/", single_sign_on.callback, name="sign_in_callback"),
        ]
    if settings.SECOND_FACTOR != "off":
        from payments.admin.sign_in import second_factor_views as views  # noqa: PLC0415  imports django-allauth

        urls += [
            path("second-factor/", views.enter_code, name="second_factor"),
            path("second-factor/set-up/", views.set_up, name="second_factor_set_up"),
            path("second-factor/change/", views.change, name="second_factor_change"),
        ]
    return urls
