"""What the payments of each day come to: summed once, and again when what was loaded has changed the day."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from typing import NamedTuple, TypeAlias

from django.db import transaction
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
    number: int
    hundredths: int


class DailyTotals(NamedTuple):
    """The totals of each day that is summed, in order, and the days that are not yet."""

    of_day: Mapping[date, list[Total]]
    missing: Sequence[date]


def daily_totals(access: Access, *, days: Sequence[date]) -> DailyTotals:
    """Return what is known of `days`. One query."""
    known = SummedDay.objects.filter(organization_id=access.organization_id, mode=access.mode, day__in=days)
    of_day = {each.day: list(map(Total._make, each.totals)) for each in known.order_by("day")}
    return DailyTotals(of_day, [day for day in days if day not in of_day])


def sum_missing(access: Access, *, days: Sequence[date], has_time: Callable[[], bool]) -> None:
    """Sum those of `days` that are not known, the first of them first, as long as there is time.

    Cost: one query, and five for each day that is not known, of which one reads all its payments, by the list's index.

    :raises OperationalError: where an import is just being written, or a day has more payments than there is time for;
        the days before are kept
    """
    for day in daily_totals(access, days=days).missing:
        if not has_time():
            return
        sum_day(access, day)


@transaction.atomic
def sum_day(access: Access, day: date) -> None:
    """Sum a day's payments, and keep what they come to, unless somebody else has done so meanwhile.

    Until that is done an import of the organization cannot end, so none of its payments is overlooked.
    """
    lock([access.organization_id])
    place = {"organization_id": access.organization_id, "mode": access.mode, "day": day}
    if not SummedDay.objects.filter(**place).exists():
        SummedDay.objects.create(**place, totals=summed(access, day))


def summed(access: Access, day: date) -> list[Total]:
    begin = datetime.combine(day, time(tzinfo=UTC))
    end = begin + timedelta(days=1)
    payments = Payment.objects.visible_to(access).filter(created_at__gte=begin, created_at__lt=end)
    # In whole numbers, for SQLite sums in binary.
    hundredths = Sum(Cast(Round(F("amount") * 100), BigIntegerField()))
    kinds = payments.values_list(*KIND).annotate(number=Count("id"), hundredths=hundredths)
    return [Total._make((*kind[:4], int(kind[4]))) for kind in kinds.order_by(*KIND)]


def forget_days(days: Collection[PlacedDay]) -> None:
    """Have days summed again whose payments this transaction has changed; it must end soon, for others wait for it."""
    lock({organization_id for organization_id, _, _ in days})
    for (organization_id, mode), placed in groupby(sorted(days), key=lambda each: each[:2]):
        changed = [day for _, _, day in placed]
        SummedDay.objects.filter(organization_id=organization_id, mode=mode, day__in=changed).delete()


def lock(organization_ids: Collection[int]) -> None:
    """Have whoever else sums days of these organizations, or forgets some, wait until this transaction ends."""
    list(Organization.objects.select_for_update(no_key=True).filter(id__in=organization_ids).order_by("id"))
