"""The totals of any period equal the sums of an export in plain Python, after imports, ORM writes and anonymization."""

from datetime import timedelta
from random import Random

import pytest

from payments.models import Access, DayKind, Mode, Organization
from payments.models.days import days_between
from payments.totals.daily import Calendar, daily_totals, sum_missing_days
from payments.totals.figures import figures_by_currency, selected
from tests.support.factories import OrganizationFactory
from tests.support.scale import SEED, times
from tests.totals.reference import CURRENCIES, DAYS, FIRST, METHODS, ZONES, Writer, records, reference

pytestmark = [pytest.mark.django_db, pytest.mark.also("citus")]

PERIODS = times(25, long=1000)


def test_totals_equal_those_of_an_export_after_random_writes() -> None:
    random = Random(SEED)  # noqa: S311  repeatable, not secret
    organizations = [OrganizationFactory.create(id=number) for number in (1, 2)]
    writers = [Writer(random, Access(organization.id, mode)) for organization in organizations for mode in Mode.values]
    for _ in range(PERIODS):
        writer = random.choice(writers)
        writer.write()
        organization = random.choice(organizations)
        if random.random() < 0.1:
            organization.time_zone = random.choice(ZONES)
            organization.save()
        check_period(random, organization, random.choice(writers))


def check_period(random: Random, organization: Organization, writer: Writer) -> None:
    kind = random.choice(list(DayKind))
    organization = Organization.objects.get(id=writer.access.organization_id)
    calendar = Calendar.of(organization, writer.access.mode, kind)
    first = FIRST + timedelta(days=random.randrange(-5, DAYS))
    last = first + timedelta(days=random.choice((0, 1, 6, 30, 91, 250)))
    filters = {"currency": set(random.sample(CURRENCIES, 2)), "method": set(random.sample((*METHODS, ""), 3))}
    filters = {name: filters[name] for name in random.sample(sorted(filters), random.randrange(3))}
    days = days_between(first, last)

    sum_missing_days(calendar, days=days)
    totals = list(daily_totals(calendar, days=days).totals)

    figures = {row.currency: row for row in figures_by_currency(selected(totals, **filters))}
    expected = reference(records(calendar.access), kind, calendar.zone, first=first, last=last, **filters)
    assert figures == expected, (calendar, first, last, filters)
