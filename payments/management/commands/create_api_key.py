"""Make an API key and print it: the only time that it is shown."""

from argparse import ArgumentParser, ArgumentTypeError
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils import timezone

from payments.links import Links
from payments.management.arguments import find_organization
from payments.management.command import ExplainedCommand
from payments.models import ApiKey, Mode

# Where scripts/start and scripts/serve listen, unless they are told otherwise.
SERVED_AT = "http://127.0.0.1:8000"


class Command(ExplainedCommand):
    """`create_api_key --organization ID --mode live|test --name NAME [--expires TIME]`."""

    help = """
        Make an API key, which shows one organization's payments of one mode.

        The key alone goes to stdout, this once: what is stored is its digest. Its
        number, by which it can be revoked, goes to stderr.
    """
    examples = (
        'manage.py create_api_key --organization 7 --mode live --name "Shop" >shop.key',
        'manage.py create_api_key --organization 7 --mode test --name "Trial" --expires 2099-12-31',
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--organization", type=int, required=True, metavar="ID", help="whose payments it shows, by its number"
        )
        parser.add_argument(
            "--mode",
            choices=Mode.values,
            required=True,
            help="which of them it shows: those that moved money, or those that did not",
        )
        parser.add_argument(
            "--name", type=name, required=True, help="who uses it, and where: one line, of 200 characters at most"
        )
        parser.add_argument(
            "--expires",
            type=future,
            metavar="TIME",
            help="when it ends: a date or a time (ISO 8601), in UTC unless it says otherwise (default: never)",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        key, text = ApiKey.objects.issue(
            find_organization(options["organization"]),
            mode=options["mode"],
            name=options["name"],
            expires_at=options["expires"],
        )
        self.stdout.write(text)
        self.tell(
            f"Key {key.pk} is made. Keep it now: only its digest is stored.",
            f'Next, with the key in $KEY: curl -H "Authorization: Bearer $KEY" {list_address()}',
            f"To revoke it: manage.py revoke_api_key {key.pk}",
        )


def list_address() -> str:
    return Links(settings.PUBLIC_BASE_URL or SERVED_AT).list


def name(text: str) -> str:
    try:
        ApiKey._meta.get_field("name").clean(text, None)  # noqa: SLF001  Django's documented name for a model's options
    except ValidationError as error:
        raise ArgumentTypeError(" ".join(error.messages)) from None
    return text


def future(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ArgumentTypeError(f"{text!r} is no date or time, such as 2027-01-31 or 2027-01-31T18:00+01:00") from None
    if moment <= timezone.now():
        raise ArgumentTypeError(f"{text!r} is not in the future")
    return moment
