"""The search index of SQLite: it follows writes of SQL, deletions, VACUUM and copies of the table."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection, transaction

from payments.conf import conf
from payments.database.sqlite import search_index
from payments.listing.search_terms import HasSearchTerms
from payments.models import Access, Payment
from tests.support.connecting import connected_to
from tests.support.factories import OrganizationFactory, PaymentFactory
from tests.support.lines import line, store
from tests.support.migrated import fresh_database
from tests.support.sql import execute, fetch_value

pytestmark = pytest.mark.only("sqlite")

COPY = "INSERT INTO payments_payment ({0}) SELECT {1} FROM payments_payment WHERE id = 'pt_1'"


@pytest.fixture(autouse=True)
def database(tmp_path: Path) -> Iterator[None]:
    with fresh_database(tmp_path) as url, connected_to(url):
        OrganizationFactory.create(id=1)
        OrganizationFactory.create(id=2)
        yield


def create_payments(*numbers: int, organization: int = 1) -> None:
    for number in numbers:
        PaymentFactory.create(
            id=f"pt_{number}", organization_id=organization, organization=None, description=f"Order {number}"
        )


def found(term: str, *, organization: int = 1) -> list[str]:
    """Return the IDs of the payments with a term, which must be the same by the index and by the list."""
    payments = Payment.objects.visible_to(Access(organization, "live"))
    by_index, by_list = (
        sorted(
            payments.filter(HasSearchTerms(organization, "live", [term], uses_index=uses_index)).values_list(
                "id", flat=True
            )
        )
        for uses_index in (True, False)
    )
    assert by_index == by_list
    return by_index


def insert_by_sql(payment_id: str, description: str) -> None:
    """Insert a payment with SQL alone, which does not know the index."""
    columns = [str(field.column) for field in Payment._meta.concrete_fields]  # noqa: SLF001
    own_values = {"id": f"'{payment_id}'", "description": f"'{description}'"}
    values = [own_values.get(name, name) for name in columns]
    execute(COPY.format(", ".join(columns), ", ".join(values)))


def test_payments_that_sql_has_inserted_are_found_after_the_next_import() -> None:
    create_payments(1)
    insert_by_sql("pt_2", "Order 2")
    assert found(":2") == []

    create_payments(3)

    assert [found(":1"), found(":2"), found(":3")] == [["pt_1"], ["pt_2"], ["pt_3"]]


def test_payment_that_changes_before_it_is_indexed_is_found_by_its_last_words() -> None:
    create_payments(1)
    insert_by_sql("pt_2", "Order 2")
    execute("UPDATE payments_payment SET description = 'Order 9' WHERE id = 'pt_2'")

    search_index.index_new_payments()

    assert [found(":2"), found(":9")] == [[], ["pt_2"]]


def test_rolled_back_payment_leaves_no_terms() -> None:
    with transaction.atomic():
        create_payments(1)
        transaction.set_rollback(True)
    create_payments(2)

    assert [found(":1"), found(":2")] == [[], ["pt_2"]]


def test_deleted_payments_leave_no_terms() -> None:
    create_payments(1, 2, 3)
    execute("DELETE FROM payments_payment WHERE id = 'pt_2'")
    execute("DELETE FROM payments_payment WHERE id = 'pt_3'")
    create_payments(4)

    assert [found(f":{number}") for number in (1, 2, 3, 4)] == [["pt_1"], [], [], ["pt_4"]]
    assert found(":order") == ["pt_1", "pt_4"]


def test_vacuum_and_a_copy_of_the_table_keep_the_row_numbers() -> None:
    create_payments(3, 1, organization=2)
    create_payments(2)
    execute("VACUUM")
    assert [found(":1", organization=2), found(":2"), found(":3", organization=2)] == [["pt_1"], ["pt_2"], ["pt_3"]]

    with connection.schema_editor() as editor:
        editor._remake_table(Payment)  # type: ignore[attr-defined]  # noqa: SLF001  as a migration does

    assert [found(":1", organization=2), found(":2"), found(":3", organization=2)] == [["pt_1"], ["pt_2"], ["pt_3"]]


def test_triggers_are_those_of_the_code() -> None:
    """A migration that copies the table of payments drops its triggers. It must create the index again."""
    triggers = {sql for (sql,) in execute("SELECT sql FROM sqlite_master WHERE type = 'trigger'")}

    assert triggers == {statement for statement in search_index.CREATE if statement.startswith("CREATE TRIGGER")}


def parts() -> int:
    """Return the number of parts of the index."""
    return int(fetch_value("SELECT count(DISTINCT segid) FROM payments_search_idx"))


def test_large_import_merges_the_parts_of_the_index() -> None:
    count = conf.IMPORT_BATCH_RECORDS + 1
    store(line(id=f"pt_{number}", organizationId="1", description=f"Order {number}") for number in range(count))
    parts_after_many = parts()
    store([line(id="pt_last", organizationId="1", description="Order last")])

    assert (parts_after_many, parts()) == (1, 2)
    assert len(found(":order")) == count + 1


def test_many_payments_are_indexed_in_parts() -> None:
    create_payments(1)
    for number in range(2, 8):
        insert_by_sql(f"pt_{number}", f"Order {number}")

    search_index.index_new_payments(part_rows=2)

    assert [found(f":{number}") for number in range(1, 8)] == [[f"pt_{number}"] for number in range(1, 8)]
