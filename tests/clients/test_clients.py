"""Client libraries that people use already can walk the list as they are."""

import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from payments.demo import SHOPS, demo_records
from payments.models import Mode
from payments.record import encode
from tests.support.factories import NOON
from tests.support.service import Service

CLIENTS = sorted(Path(__file__).parent.glob("walk_with_*.py"))
SHOP = SHOPS[1]
COUNT = 450


@pytest.fixture(scope="module")
def ids(service: Service) -> list[str]:
    """Load some payments of one shop, and return their ids, newest first."""
    records = (
        record for record in demo_records(10_000, seed=3, until=NOON) if belongs(record.organization_id, record.mode)
    )
    chosen = list(islice(records, COUNT))
    service.create_organization(SHOP.id, name=SHOP.name)
    service.import_records(map(encode, chosen))
    ordered = sorted(chosen, key=lambda record: (record.created_at, record.id.encode()), reverse=True)
    return [record.id for record in ordered]


def belongs(organization_id: str, mode: str) -> bool:
    return organization_id == str(SHOP.id) and mode == Mode.LIVE


def test_there_are_clients_of_several_kinds() -> None:
    assert len(CLIENTS) == 3


@pytest.mark.parametrize("client", CLIENTS, ids=lambda path: path.stem)
def test_a_client_that_nobody_here_wrote_walks_the_list(service: Service, ids: list[str], client: Path) -> None:
    key = service.create_api_key(organization=SHOP.id, mode="live")

    done = subprocess.run([sys.executable, client, service.base_url, key], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ids
