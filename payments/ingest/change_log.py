"""The changes of payments that SQL writes. Writes of the ORM record theirs by themselves (models/recording.py)."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import date
from typing import Any

from payments.ingest.stored_rows import StoredRow
from payments.models import CHANGE_PAYMENTS_MAX, Access, AccessState, Changes, DayKind, Days, UtcDay, new_change_id


class ChangeLog:
    """The changes of one transaction, until `record` numbers them at its end."""

    def __init__(self, import_id: int = 0) -> None:
        self.import_id = import_id  # the number of the import; 0 in a dry run
        self.accesses: dict[int, Access] = {}  # by the ID of the change
        # The number of written payments, by the ID of their change. A change without a payment is not recorded.
        self.payments: Counter[int] = Counter()
        self.days: Days = defaultdict(set)  # those with changed payments, and maybe others

    def assign(self, rows: Iterable[StoredRow]) -> list[int]:
        """Return the ID of the change of each row, if the row is written."""
        row_counts: Counter[tuple[int, str]] = Counter()
        current: dict[tuple[int, str], int] = {}
        change_ids = []
        for row in rows:
            access = row.organization_id, row.mode
            if row_counts[access] % CHANGE_PAYMENTS_MAX == 0:
                while (change_id := new_change_id()) in self.accesses:
                    pass
                current[access] = change_id
                self.accesses[change_id] = Access._make(access)
            row_counts[access] += 1
            change_ids.append(current[access])
        return change_ids

    @property
    def changes(self) -> Changes:
        changes: Changes = defaultdict(list)
        for change_id in self.payments:
            changes[self.accesses[change_id]].append(change_id)
        return changes

    @property
    def written(self) -> Counter[Access]:
        """Return the number of written payments of each organization and mode."""
        written: Counter[Access] = Counter()
        for change_id, number in self.payments.items():
            written[self.accesses[change_id]] += number
        return written

    def add_days(self, days: Days) -> None:
        for access, utc_days in days.items():
            self.days[access] |= utc_days

    def add_paid_before(self, written: Iterable[tuple[int, Any]]) -> None:
        """Note the UTC days of former times of payment, which stand after the IDs of the changes; None: no day."""
        for change_id, time in written:
            if time is not None:
                self.days[self.accesses[change_id]].add(UtcDay(DayKind.PAID, date.fromisoformat(str(time)[:10])))

    def record(self) -> None:
        """Record the changes, and delete the totals of the days whose payments have changed.

        This happens at the end of the transaction. It locks the states of the payments, so a second transaction that
        changes payments of the same organization and mode waits here until the first one has ended. Therefore a reader
        that sees a revision sees all changes before it, and none after it.
        """
        AccessState.objects.record(self.changes, days=self.days)
