"""Create an API key and print it."""

from argparse import ArgumentParser, ArgumentTypeError
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.utils import timezone

from payments.api.links import Links
from payments.conf import conf
from payments.management.command import PaymentsCommand
from payments.management.options import find_organization
from payments.models import ApiKey, KeyScope, Mode

# The default address of scripts/start and scripts/serve.
DEFAULT_BASE_URL = "http://127.0.0.1:8000"


class Command(PaymentsCommand):
    """`create_api_key --organization ID --mode live|test --name NAME [--scope read|import] [--expires TIME]`."""

    help = """
        Create an API key, which reads or imports one organization's payments of one
        mode.

        Only the key goes to stdout. It cannot be printed again, because only its digest
        is stored. Its number, which revokes it, goes to stderr.
    """
    examples = (
        'manage.py create_api_key --organization 7 --mode live --name "Shop" >shop.key',
        'manage.py create_api_key --organization 7 --mode live --name "Shop" --scope import >import.key',
        'manage.py create_api_key --organization 7 --mode test --name "Trial" --expires 2099-12-31',
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--organization", type=int, required=True, metavar="ID", help="the organization that owns the payments"
        )
        parser.add_argument(
            "--mode",
            choices=Mode.values,
            required=True,
            help="the mode of the payments: live payments moved money, test payments did not",
        )
        parser.add_argument(
            "--name",
            type=parse_name,
            required=True,
            help="the client that uses the key: one line, at most 200 characters",
        )
        parser.add_argument(
            "--scope",
            choices=KeyScope.values,
            default=KeyScope.READ,
            help="whether the key reads payments, or imports them (default: read)",
        )
        parser.add_argument(
            "--expires",
            type=parse_future_time,
            metavar="TIME",
            help="a date or a time (ISO 8601), in UTC unless it has an offset (default: the key does not expire)",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        key, text = ApiKey.objects.issue(
            find_organization(options["organization"]),
            mode=options["mode"],
            name=options["name"],
            scope=options["scope"],
            expires_at=options["expires"],
        )
        links = Links(conf.PUBLIC_BASE_URL or DEFAULT_BASE_URL)
        send = f"{links.list}/imports -H 'Content-Type: application/x-ndjson' --data-binary @payments.jsonl"
        example = links.list if key.scope == KeyScope.READ else send
        self.stdout.write(text)
        self.write_success(
            f"Created API key {key.pk}. Store the key now: it cannot be printed again.",
            f'Next, with the key in $KEY: curl -H "Authorization: Bearer $KEY" {example}',
            f"To revoke it: manage.py revoke_api_key {key.pk}",
        )


def parse_name(text: str) -> str:
    try:
        ApiKey._meta.get_field("name").clean(text, None)  # noqa: SLF001  Django's documented name for a model's options
    except ValidationError as error:
        raise ArgumentTypeError(" ".join(error.messages)) from None
    return text


def parse_future_time(text: str) -> datetime:
    """Return a date or a time in ISO 8601, in UTC. A text without an offset is in UTC; a date is its first instant."""
    try:
        time = datetime.fromisoformat(text)
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ArgumentTypeError(
            f"{text!r} is not a date or a time such as 2027-01-31 or 2027-01-31T18:00+01:00"
        ) from None
    if time <= timezone.now():
        raise ArgumentTypeError(f"{text!r} is not in the future")
    return time
