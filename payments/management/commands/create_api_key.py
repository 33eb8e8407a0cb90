"""Make an API key and print it: the only time that it is shown."""

from argparse import ArgumentParser, ArgumentTypeError
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand
from django.utils import timezone

from payments.management.arguments import find_organization
from payments.models import ApiKey, Mode


class Command(BaseCommand):
    """`create_api_key --organization ID --mode live|test --name NAME [--expires TIME]`."""

    help = "Make an API key for one organization and mode. The key alone goes to stdout; it is not shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--organization", type=int, required=True, metavar="ID", help="whose payments it shows")
        parser.add_argument("--mode", choices=Mode.values, required=True, help="which of them it shows")
        parser.add_argument("--name", type=name, required=True, help="what people know it by: who uses it, and where")
        parser.add_argument(
            "--expires",
            type=future,
            metavar="TIME",
            help="when it ends (ISO 8601; UTC where it names no zone); else never",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        key, text = ApiKey.objects.issue(
            find_organization(options["organization"]),
            mode=options["mode"],
            name=options["name"],
            expires_at=options["expires"],
        )
        self.stdout.write(text)
        if options["verbosity"]:
            self.stderr.write(f"Key {key.pk} is made. Keep it now: only its digest is stored.", self.style.SUCCESS)


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
