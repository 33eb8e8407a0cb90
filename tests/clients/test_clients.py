"""Existing client libraries walk the list and follow the change feed unmodified."""

import sys
from itertools import islice
from operator import attrgetter
from pathlib import Path

import pytest

from payments.demo import SHOPS, demo_records
from payments.models import Mode
from payments.record import encode
from tests.support.commands import output_of
from tests.support.factories import NOON
from tests.support.lines import line
from tests.support.service import Service

pytestmark = [pytest.mark.once, pytest.mark.xdist_group("service")]

DIRECTORY = Path(__file__).parent
OTHER_CLIENTS = [DIRECTORY / "walk_with_dlt.py", DIRECTORY / "walk_with_mollie.py"]
CLIENTS = [
    DIRECTORY / "walk_with_halchemy.py",
    *(pytest.param(path, marks=pytest.mark.extended) for path in OTHER_CLIENTS),
]
SHOP = SHOPS[1]
COUNT = 450


@pytest.fixture(scope="module")
def ids(service: Service) -> list[str]:
    """Import payments of one shop. Return their IDs, newest first."""
    demo = demo_records(10_000, seed=3, until=NOON)
    of_shop = (record for record in demo if (record.organization_id, record.mode) == (str(SHOP.id), Mode.LIVE))
    records = list(islice(of_shop, COUNT))
    service.create_organization(SHOP.id, name=SHOP.name)
    service.import_records(map(encode, records))
    newest_first = sorted(records, key=lambda record: (record.created_at, record.id.encode()), reverse=True)
    return [record.id for record in newest_first]


@pytest.mark.processes
@pytest.mark.parametrize("client", CLIENTS, ids=attrgetter("stem"))
def test_unmodified_client_walks_the_list(service: Service, ids: list[str], client: Path) -> None:
    key = service.create_api_key(organization=SHOP.id, mode="live")

    output = output_of([sys.executable, client, service.base_url, key])

    assert output.split() == ids


@pytest.mark.extended
@pytest.mark.processes
def test_unmodified_hal_client_follows_the_feed(service: Service) -> None:
    shop, ids = "7002", [f"pt_old{number}" for number in range(COUNT)]
    service.import_records(line(id=payment_id, organizationId=shop) for payment_id in ids)
    key = service.create_api_key(organization=int(shop), mode="live")
    program = DIRECTORY / "follow_with_halchemy.py"

    *first, later = output_of([sys.executable, program, service.base_url, key]).split()
    service.import_records([line(id="pt_new", organizationId=shop)])
    *second, _ = output_of([sys.executable, program, service.base_url, key, later]).split()

    assert sorted(first) == sorted(ids)
    assert second == ["pt_new"]
