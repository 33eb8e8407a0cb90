"""List API keys, so that one can be told from another and revoked."""

from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from payments.management.arguments import find_organization
from payments.management.command import ExplainedCommand
from payments.models import ApiKey

HEADINGS = ("KEY", "ORGANIZATION", "MODE", "NAME", "CREATED", "LAST USED", "EXPIRES", "REVOKED")


class Command(ExplainedCommand):
    """`list_api_keys [--organization ID]`."""

    help = """
        List API keys, the revoked and the expired ones too, so that one can be told
        from another and revoked.

        Columns, separated by tabs, go to stdout; times are in UTC, and last uses are
        noted once a minute. No key itself is shown: none is stored.
    """
    examples = ("manage.py list_api_keys", "manage.py list_api_keys --organization 7")

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--organization", type=int, metavar="ID", help="only the keys of this one (default: of all)"
        )

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
