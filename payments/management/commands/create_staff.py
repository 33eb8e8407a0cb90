"""Create a user of the admin."""

import os
import secrets
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.management.base import CommandError
from django.db import transaction

from payments.admin.grants import assign_organizations, assign_role
from payments.admin.scope import EVERYTHING, Scope
from payments.conf import conf
from payments.management.command import PaymentsCommand
from payments.management.options import find_organization
from payments.models import Role

PASSWORD = "STAFF_PASSWORD"  # noqa: S105  the name of a variable
PASSWORD_BYTES = 12
NO_PASSWORDS = f"PASSWORD_LOGIN is off: set --email, by which single sign-on finds the user, and no {PASSWORD}."

ROLES = {role.slug: role for role in Role}


class Command(PaymentsCommand):
    """`create_staff USERNAME --role ROLE (--organization ID... | --all-organizations) [--email ADDRESS]`."""

    help = """
        Create a user of the admin, who can log in at once.

        The password is the value of STAFF_PASSWORD. Without it, the command generates
        a password and prints it, alone, on stdout. With PASSWORD_LOGIN=off, the user
        has no password and logs in by single sign-on: the email address is needed.
    """
    examples = (
        "manage.py create_staff ann --role viewer --organization 1001 1002",
        "manage.py create_staff bob --role administrator --all-organizations --email bob@example.com",
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", metavar="USERNAME", help="an unused name")
        parser.add_argument("--role", required=True, choices=ROLES, help="what the user may do")
        choice = parser.add_mutually_exclusive_group(required=True)
        choice.add_argument(
            "--organization", type=int, nargs="+", metavar="ID", help="the user sees these organizations"
        )
        choice.add_argument(
            "--all-organizations", action="store_true", help="the user sees all organizations, also future ones"
        )
        parser.add_argument("--email", default="", metavar="ADDRESS", help="by which a single sign-on finds the user")

    def handle(self, *_args: Any, **options: Any) -> None:
        ids = [find_organization(number).id for number in options["organization"] or ()]
        chosen = os.environ.get(PASSWORD, "")
        if not conf.PASSWORD_LOGIN and (chosen or not options["email"]):
            raise CommandError(NO_PASSWORDS)
        password = (chosen or secrets.token_urlsafe(PASSWORD_BYTES)) if conf.PASSWORD_LOGIN else None
        user = User(username=options["username"], email=options["email"], is_staff=True)
        user.set_password(password)
        user.full_clean()
        if password:
            validate_password(password, user)
        if User.objects.filter(username__iexact=user.username).exists():
            raise CommandError(f"There is a user {user.username} already, maybe with other upper and lower case.")
        with transaction.atomic():
            user.save(force_insert=True)
            assign_role(user, ROLES[options["role"]])
            assign_organizations(user, EVERYTHING if options["all_organizations"] else Scope(frozenset(ids)))
        if password and not chosen:
            self.stdout.write(password)
        self.write_success(f"Created {user.username}, {ROLES[options['role']].value}. The user can log in at /admin/.")
