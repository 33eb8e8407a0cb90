"""Bytes per payment of the feed's parts."""

from collections.abc import Iterator, Mapping

from benchmarks.growth.sizes import length
from benchmarks.growth.tables import execute

# The column `change_id` is a part of the payments table.
RELATIONS = ("payments_payment", "payment_change", "payment_unchanged", "payments_change", "payments_change_pkey")


def bytes_per_payment() -> dict[str, float]:
    """Return the size of each relation in the database that the ORM is connected to, divided by the payments."""
    [(count,)] = execute("SELECT count(*) FROM payments_payment")
    return {relation: length(relation) / count for relation in RELATIONS}


def size_table(sizes: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Yield the lines of a table with the sizes of each variant."""
    yield f"| bytes per payment | {' | '.join(sizes)} |"
    yield "|---|" + "---|" * len(sizes)
    for relation in RELATIONS:
        yield f"| `{relation}` | {' | '.join(f'{size[relation]:.1f}' for size in sizes.values())} |"
