"""Revoke an API key."""

import re
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from payments.management.command import PaymentsCommand
from payments.models import ApiKey, identifiers


class Command(PaymentsCommand):
    """`revoke_api_key NUMBER`, or `revoke_api_key -`."""

    help = """
        Revoke an API key. The next request with this key is refused.

        A revocation cannot be undone. A client that needs access again needs a new key.
    """
    examples = ("manage.py revoke_api_key 3", "manage.py revoke_api_key - <leaked.key")

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "key", metavar="KEY", help="the key's number in list_api_keys, or - to read the key itself from stdin"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        key = selected_key(options["key"])
        if key.revoked_at is not None:
            self.write_success(
                f"API key {key.pk}, {key}, was already revoked at {key.revoked_at:%Y-%m-%d %H:%M:%S} UTC."
            )
            return
        ApiKey.objects.filter(pk=key.pk).revoke(now=timezone.now())
        self.write_success(f"Revoked API key {key.pk}, {key}.")


def selected_key(argument: str) -> ApiKey:
    """Return the key that an argument identifies. A key itself comes from stdin, because shells store arguments."""
    if argument == "-":
        keys = ApiKey.objects.filter(digest=identifiers.digest(sys.stdin.readline().strip()))
    elif re.fullmatch("[0-9]{1,18}", argument):
        keys = ApiKey.objects.filter(pk=argument)
    else:
        raise CommandError("KEY must be the number of a key, or - to read the key itself from stdin.")
    key = keys.first()
    if key is None:
        raise CommandError("This API key does not exist. To see all API keys: manage.py list_api_keys")
    return key
