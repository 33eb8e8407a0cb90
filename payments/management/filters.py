"""The list's filters as a command's options."""

import re
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError

from payments.exceptions import InvalidParameter
from payments.models import PaymentQuerySet
from payments.parameters import FILTERS, selection

NAMES = [name for name in FILTERS if name != "metadata"]


def add_filters(parser: ArgumentParser) -> None:
    """Add an option for each: `--status`, `--customer-id`, `--created-at-gte`, `--metadata KEY=VALUE`."""
    group = parser.add_argument_group("filters", "those of the API's list; a payment must match all that are given")
    for name in NAMES:
        words = re.findall("[A-Z]?[a-z]+", name)
        option = "--" + "-".join(words).lower()
        # What a query string takes beside is in brackets.
        must_be = FILTERS[name].must_be.partition(" (")[0]
        group.add_argument(option, dest=name, metavar=words[-1].upper(), help=must_be)
    group.add_argument(
        "--metadata", action="append", default=[], metavar="KEY=VALUE", help="what metadata must hold; for more, again"
    )


def filtered(payments: PaymentQuerySet, options: Mapping[str, Any]) -> PaymentQuerySet:
    """Return the payments that match the options.

    :raises CommandError: where one of them is wrong
    """
    given = {name: options[name] for name in NAMES if options[name] is not None}
    for pair in options["metadata"]:
        key, equals, value = pair.partition("=")
        if not key or not equals or f"metadata[{key}]" in given:
            raise CommandError("--metadata must be KEY=VALUE, each key once.")
        given[f"metadata[{key}]"] = value
    try:
        asked = selection(given)
    except InvalidParameter as error:
        raise CommandError(str(error.detail)) from None
    for _, each, values in asked.filters:
        payments = each.narrow(payments, values)
    return payments
