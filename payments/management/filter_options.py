"""The filters of the API's list, as options of a command."""

import re
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError

from payments.listing.filters import (
    FILTERS,
    LIST_FILTERS,
    METADATA_PAIRS_MAX,
    SINGLE_FILTERS,
    InvalidSelection,
    parse_selection,
)
from payments.listing.query import select
from payments.models import Access, PaymentQuerySet

ADVICE = " ("  # begins advice for query strings


def add_filter_options(parser: ArgumentParser) -> None:
    """Add an option per filter: `--status`, `--customer-id`, `--created-at-gte`, `--metadata KEY=VALUE`."""
    group = parser.add_argument_group(
        "filters", "filters of the API's list; a payment must match all; amounts need --currency"
    )
    for name in SINGLE_FILTERS:
        words = re.findall("[A-Z]?[a-z]+", name)
        filter_ = FILTERS[name]
        rule = filter_.rule.partition(ADVICE)[0]
        help_text = f"{filter_.effect}: {rule}"
        option = "--" + "-".join(words).lower()
        group.add_argument(option, dest=name, action="append", metavar=filter_.kind, help=help_text)
    group.add_argument(
        "--metadata",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help=f"metadata must contain this pair; repeat the option for up to {METADATA_PAIRS_MAX} pairs",
    )


def has_filter_options(options: Mapping[str, Any]) -> bool:
    return bool(options["metadata"]) or any(options[name] is not None for name in SINGLE_FILTERS)


def apply_filter_options(
    payments: PaymentQuerySet, options: Mapping[str, Any], *, access: Access | None
) -> PaymentQuerySet:
    """Return the payments that match the options. `access` is theirs, if they are of one organization and mode.

    :raises CommandError: if the value of an option is invalid
    """
    parameters = {}
    for name in SINGLE_FILTERS:
        if texts := options[name]:
            if len(texts) > 1 and name not in LIST_FILTERS:
                raise CommandError(f"{name} must occur only once.")
            parameters[name] = ",".join(texts)
    for pair in options["metadata"]:
        key, equals, value = pair.partition("=")
        name = f"metadata[{key}]"
        if not key or not equals or name in parameters:
            raise CommandError("--metadata must be KEY=VALUE. Use each key once.")
        parameters[name] = value
    try:
        selection = parse_selection(parameters)
    except InvalidSelection as error:
        raise CommandError(str(error).partition(ADVICE)[0].removesuffix(".") + ".") from None
    return select(payments, selection.filters, access=access)
