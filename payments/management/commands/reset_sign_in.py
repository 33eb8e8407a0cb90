"""Remove the second factor of a user, and the link to the OpenID provider."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError

from payments.admin.login import end_sessions
from payments.conf import conf
from payments.management.command import PaymentsCommand


class Command(PaymentsCommand):
    """`reset_sign_in NAME`."""

    help = """
        Remove the second factor of a user, and the link to an account at the OpenID
        provider.

        The user can then log in with the password alone, or with another account
        that has the same e-mail address. All sessions of the user end. If the
        password may be known to others, set another one in the admin.
    """
    examples = ("manage.py reset_sign_in ann",)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", metavar="NAME", help="the user name")

    def handle(self, *_args: Any, **options: Any) -> None:
        if conf.SECOND_FACTOR == "off" and not conf.OIDC_ISSUER:
            raise CommandError("SECOND_FACTOR is off and OIDC_ISSUER is empty: there is nothing to reset.")
        user = User.objects.filter(username=options["name"]).first()
        if user is None:
            raise CommandError(f"There is no user {options['name']}.")
        # Only these settings install the tables.
        if conf.SECOND_FACTOR != "off":
            from payments.admin.sign_in.second_factor import remove  # noqa: PLC0415  imports django-allauth

            self.report(f"second factor of {user}", count=remove(user))
        if conf.OIDC_ISSUER:
            from payments.admin.sign_in.adapters import unlink  # noqa: PLC0415  imports django-allauth

            self.report(f"link of {user} to the OpenID provider", count=unlink(user))
        self.write_success(f"{end_sessions(user)} sessions of {user} have ended.")

    def report(self, subject: str, *, count: int) -> None:
        self.write_success(f"The {subject} is removed." if count else f"There is no {subject}.")
