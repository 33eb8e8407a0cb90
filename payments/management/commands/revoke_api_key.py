"""Revoke an API key: the next request that shows it is refused."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from payments import api_keys
from payments.management.command import ExplainedCommand
from payments.models import ApiKey


class Command(ExplainedCommand):
    """`revoke_api_key NUMBER`, or `revoke_api_key -`."""

    help = """
        Revoke an API key: the next request that shows it is refused.

        That cannot be undone. Whoever is to go on needs a new key.
    """
    examples = ("manage.py revoke_api_key 3", "manage.py revoke_api_key - <leaked.key")

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "key",
            metavar="KEY",
            help="its number, as list_api_keys shows it; or - to read the key itself from stdin",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        key = find_key(options["key"])
        if key.revoked_at is not None:
            self.tell(f"Key {key.pk}, {key}, was revoked already, at {key.revoked_at:%Y-%m-%d %H:%M:%S} UTC.")
            return
        ApiKey.objects.filter(pk=key.pk).revoke(now=timezone.now())
        self.tell(f"Key {key.pk}, {key}, is revoked.")


def find_key(argument: str) -> ApiKey:
    """Return the key that `argument` names. A key itself comes by stdin: a shell remembers arguments."""
    if argument == "-":
        found = ApiKey.objects.filter(digest=api_keys.digest(sys.stdin.readline().strip()))
    elif argument.isascii() and argument.isdigit():
        found = ApiKey.objects.filter(pk=argument)
    else:
        raise CommandError("KEY is a key's number, or - to read the key itself from stdin.")
    key = found.first()
    if key is None:
        raise CommandError("There is no such key.")
    return key
