"""List API keys."""

from argparse import ArgumentParser
from typing import Any

from payments.management.command import PaymentsCommand
from payments.management.options import add_organization_option, find_organization
from payments.models import ApiKey
from payments.runtime.terminal import printable

HEADINGS = ["KEY", "ORGANIZATION", "MODE", "SCOPE", "NAME", "CREATED", "LAST_USED", "EXPIRES", "REVOKED", "ENDS_IN"]


class Command(PaymentsCommand):
    """`list_api_keys [--organization ID]`."""

    help = """
        List all API keys, including revoked and expired ones.

        The columns go to stdout, separated by tabs. Times are in UTC. The last use is
        updated once a minute. Of a key itself, only the last four characters are
        stored.
    """
    examples = ("manage.py list_api_keys", "manage.py list_api_keys --organization 7")

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_organization_option(parser, subject="API keys")

    def handle(self, *_args: Any, **options: Any) -> None:
        keys = ApiKey.objects.order_by("pk")
        if options["organization"] is not None:
            keys = keys.filter(organization=find_organization(options["organization"]))
        self.stdout.write("\t".join(HEADINGS).replace("_", " "))
        for key in keys:
            times = (key.created_at, key.last_used_at, key.expires_at, key.revoked_at)
            texts = (time.isoformat(sep=" ", timespec="seconds") if time else "-" for time in times)
            values = (key.pk, key.organization_id, key.mode, key.scope, printable(key.name), *texts, key.hint)
            self.stdout.write("\t".join(map(str, values)))
