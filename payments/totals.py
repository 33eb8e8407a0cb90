"""What the payments of each day come to: summed once, and again when an import has changed the day."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from typing import NamedTuple, TypeAlias

from django.db import OperationalError, transaction
from django.db.models import BigIntegerField, Count, F, Sum
from django.db.models.functions import Cast, Round

from payments.models import Access, Organization, Payment, SummedDay

# An organization's, of a mode, as a text such as 2026-01-31.
PlacedDay: TypeAlias = tuple[int, str, str]


KIND = ("amount_currency", "status", "method")


class Total(NamedTuple):
    """How many payments of a kind there were, and their amounts together, in hundredths."""

    currency: str
    status: str
    method: str
    payments: int
    hundredths: int


class DailyTotals(NamedTuple):
    """The totals of each day that is summed, in order, and the days that are not yet."""

    of_day: Mapping[date, list[Total]]
    missing: Sequence[date]


def daily_totals(access: Access, *, days: Sequence[date], has_time: Callable[[], bool]) -> DailyTotals:
    """Return the totals of `days`; those that are not known are summed, the latest first, as long as there is time.

    Cost: one query, and four for each day that is not known, of which one reads all its payments, by the list's index.
    """
    known = SummedDay.objects.filter(organization_id=access.organization_id, mode=access.mode, day__in=days)
    of_day = {each.day: list(map(Total._make, each.totals)) for each in known}
    missing = sorted(set(days) - of_day.keys(), reverse=True)
    while missing and has_time():
        try:
            of_day[missing[0]] = sum_day(access, missing[0])
        except OperationalError:  # an import is just being written, or there are too many payments for the time
            break
        del missing[0]
    return DailyTotals(dict(sorted(of_day.items())), sorted(missing))


@transaction.atomic
def sum_day(access: Access, day: date) -> list[Total]:
    """Sum a day's payments, and keep what they come to.

    Meanwhile an import of the organization cannot end, so none of its payments is overlooked.
    """
    lock(access.organization_id)
    begin = datetime.combine(day, time(tzinfo=UTC))
    end = begin + timedelta(days=1)
    payments = Payment.objects.visible_to(access).filter(created_at__gte=begin, created_at__lt=end)
    # In whole numbers, for SQLite sums in binary.
    hundredths = Sum(Cast(Round(F("amount") * 100), BigIntegerField()))
    kinds = payments.values_list(*KIND).annotate(payments=Count("id"), hundredths=hundredths)
    totals = [Total._make((*kind[:4], int(kind[4]))) for kind in kinds.order_by(*KIND)]
    place = {"organization_id": access.organization_id, "mode": access.mode, "day": day}
    SummedDay.objects.update_or_create(**place, defaults={"totals": totals})
    return totals


def forget_days(days: Iterable[PlacedDay]) -> None:
    """Have days summed again whose payments this transaction has changed; it must end soon, for others wait for it."""
    for (organization_id, mode), placed in groupby(sorted(days), key=lambda each: each[:2]):
        lock(organization_id)
        changed = [day for _, _, day in placed]
        SummedDay.objects.filter(organization_id=organization_id, mode=mode, day__in=changed).delete()


def lock(organization_id: int) -> None:
    """Have whoever else sums an organization's days, or forgets some, wait until this transaction ends."""
    list(Organization.objects.select_for_update(no_key=True).filter(id=organization_id))
