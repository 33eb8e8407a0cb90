"""List API keys, so that one can be told from another and revoked."""

from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand

from payments.management.arguments import find_organization
from payments.models import ApiKey

HEADINGS = ("KEY", "ORGANIZATION", "MODE", "NAME", "CREATED", "LAST USED", "EXPIRES", "REVOKED")


class Command(BaseCommand):
    """`list_api_keys [--organization ID]`."""

    help = "List API keys: tab-separated columns on stdout. No key itself is shown: none is stored."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--organization", type=int, metavar="ID", help="only the keys of this one")

    def handle(self, *_args: Any, **options: Any) -> None:
        keys = ApiKey.objects.order_by("pk")
        if options["organization"] is not None:
            keys = keys.filter(organization=find_organization(options["organization"]))
        self.stdout.write("\t".join(HEADINGS))
        for key in keys:
            times = (key.created_at, key.last_used_at, key.expires_at, key.revoked_at)
            self.stdout.write(
                "\t".join([str(key.pk), str(key.organization_id), key.mode, key.name, *map(shown, times)])
            )


def shown(moment: datetime | None) -> str:
    return moment.isoformat(sep=" ", timespec="seconds") if moment else "-"
