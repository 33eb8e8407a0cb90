"""Effect of the fillfactor on updates, and the size of the table after ten rounds of updates."""

from collections.abc import Iterator

from benchmarks.growth.tables import PLAIN_SCHEMA, TABLE, execute

PAYMENTS = 100_000
ROUNDS = 10
VACUUM_INTERVAL = 2  # rounds; autovacuum runs after a fifth of the rows has changed
FILLFACTORS = (100, 90, 80)
SCHEMA = "fillfactor_trial"
NAME = f"{SCHEMA}.{TABLE}"

CHANGES = {
    "an amount (a refund)": "amount_remaining = COALESCE(amount_remaining, amount) - 0.01, "
    "amount_remaining_currency = amount_currency",
    "the status": "status = CASE status WHEN 'failed' THEN 'canceled' ELSE 'failed' END",
}


def measure_updates() -> Iterator[str]:
    """Yield the lines of a table. Every round changes another tenth of the payments."""
    yield (
        "| change | fillfactor | updates without index changes (HOT) | table, bytes per payment "
        "| after ten rounds | indexes, bytes per payment | after ten rounds |"
    )
    yield "|---|---|---|---|---|---|---|"
    for change, assignments in CHANGES.items():
        for fillfactor in FILLFACTORS:
            create(fillfactor)
            before = lengths()
            for number in range(ROUNDS):
                execute(f"UPDATE {NAME} SET {assignments} WHERE abs(hashtext(id)::bigint) %% {ROUNDS} = {number}", [])  # noqa: S608
                if number % VACUUM_INTERVAL:
                    execute(f"VACUUM {NAME}")
            after = lengths()
            sizes = " | ".join(f"{size:.0f}" for pair in zip(before, after, strict=True) for size in pair)
            yield f"| {change} | {fillfactor} | {hot_share():.0%} | {sizes} |"
            execute(f"DROP SCHEMA {SCHEMA} CASCADE")


def create(fillfactor: int) -> None:
    """Create a table with this fillfactor, and insert the newest payments."""
    execute(f"CREATE SCHEMA {SCHEMA}")
    execute(
        f"CREATE TABLE {NAME} (LIKE {PLAIN_SCHEMA}.{TABLE} INCLUDING ALL) "
        f"WITH (fillfactor = {fillfactor}, autovacuum_enabled = false)"
    )
    newest = f"SELECT * FROM {PLAIN_SCHEMA}.{TABLE} ORDER BY id DESC LIMIT {PAYMENTS}"  # noqa: S608
    execute(f"INSERT INTO {NAME} SELECT * FROM ({newest}) AS newest ORDER BY id")  # noqa: S608
    execute(f"VACUUM ANALYZE {NAME}")


def lengths() -> tuple[float, float]:
    """Return the bytes per payment of the table and of its indexes."""
    [row] = execute(f"SELECT pg_table_size('{NAME}'), pg_indexes_size('{NAME}'), count(*) FROM {NAME}")  # noqa: S608
    table, indexes, count = row
    return table / count, indexes / count


def hot_share() -> float:
    """Return the share of updates that fit on the row's page and changed no index (heap-only tuples, HOT)."""
    execute("SELECT pg_stat_force_next_flush()")
    [(hot, updated)] = execute(
        "SELECT n_tup_hot_upd, n_tup_upd FROM pg_stat_user_tables WHERE relid = %s::regclass", [NAME]
    )
    return float(hot / updated)
