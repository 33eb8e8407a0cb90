"""Parsers and checks for the environment variables of the sign-in. See environment.py."""

import re
from collections.abc import Mapping
from typing import Any

from environs import ValidationError

from payments_site.environment import split_url

# The column of the provider of an account at an OpenID provider.
ISSUER_CHARACTERS_MAX = 200
LOOPBACK = {"localhost", "127.0.0.1", "::1"}
OIDC_REQUIRED = {"OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET", "OIDC_EMAIL_DOMAINS"}
SECOND_FACTORS = ("off", "optional", "required")


def issuer(text: str) -> str:
    """Return the URL of an OpenID provider, exactly as the provider writes it; an empty text stays empty.

    Only a provider on this machine may use plain HTTP.
    """
    if not text:
        return ""
    parts = split_url(text)
    if parts is None or len(text) > ISSUER_CHARACTERS_MAX:
        raise ValidationError("Must be https://HOST[:PORT][/PATH].")
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        raise ValidationError("Must start with https://.")
    return text


def domains(text: str) -> list[str]:
    names = [name.strip().lower() for name in text.split(",")] if text else []
    if not all(re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", name) for name in names):
        raise ValidationError("Must be domains such as example.com, separated by commas.")
    return names


def claim(text: str) -> tuple[str, str] | None:
    """Return the name and the value of a claim; None for an empty text."""
    if not text:
        return None
    name, separator, value = text.partition("=")
    if not (name and separator and value):
        raise ValidationError("Must be NAME=VALUE.")
    return name, value


SIGN_IN_PARSERS = (claim, domains, issuer)


def sign_in_errors(settings: Mapping[str, Any], *, install_packages: str) -> dict[str, list[str]]:
    """Return the errors of settings for sign-in that do not fit together."""
    password_login, second_factor = settings["PAYMENTS_PASSWORD_LOGIN"], settings["PAYMENTS_SECOND_FACTOR"]
    names = [name for name in settings if name.startswith("PAYMENTS_OIDC_")]
    oidc = {name.removeprefix("PAYMENTS_"): settings[name] for name in names}
    errors = {}
    for name, value in oidc.items():
        if oidc["OIDC_ISSUER"] and not value and name in OIDC_REQUIRED:
            errors[name] = ["Must be set if OIDC_ISSUER is set."]
        if value and not oidc["OIDC_ISSUER"]:
            errors[name] = ["Must be empty if OIDC_ISSUER is empty."]
    if not password_login and not oidc["OIDC_ISSUER"]:
        errors["PASSWORD_LOGIN"] = ["Must be on if OIDC_ISSUER is empty: there is no other login."]
    if not password_login and second_factor != "off":
        errors["SECOND_FACTOR"] = ["Must be off if PASSWORD_LOGIN is off: the OpenID provider asks for factors."]
    if install_packages:
        uses = {"OIDC_ISSUER": oidc["OIDC_ISSUER"], "SECOND_FACTOR": second_factor != "off"}
        for name in (name for name, is_used in uses.items() if is_used):
            errors[name] = [f"Must be {'empty' if name == 'OIDC_ISSUER' else 'off'}, or run {install_packages} first."]
    return errors
