"""What room on the table's pages gives to updates, and what ten rounds of them leave behind."""

from collections.abc import Iterator

from benchmarks.growth.tables import PLAIN_SCHEMA, TABLE, execute

PAYMENTS = 100_000
ROUNDS = 10
VACUUMED_EVERY = 2  # rounds: autovacuum comes when a fifth has changed
FILLED = (100, 90, 80)
SCHEMA = "filled"
NAME = f"{SCHEMA}.{TABLE}"

CHANGES = {
    "an amount: a refund": "amount_remaining = COALESCE(amount_remaining, amount) - 0.01, "
    "amount_remaining_currency = amount_currency",
    "the status": "status = CASE status WHEN 'failed' THEN 'canceled' ELSE 'failed' END",
}


def measure_updates() -> Iterator[str]:
    """Yield the lines of a table. Each round changes another tenth of the payments."""
    yield (
        "| what changes | fillfactor | updated on the page, no index touched | the table, bytes a payment "
        "| after ten rounds | its indexes | after ten rounds |"
    )
    yield "|---|---|---|---|---|---|---|"
    for change, assignments in CHANGES.items():
        for filled in FILLED:
            make(filled)
            before = lengths()
            for number in range(ROUNDS):
                execute(f"UPDATE {NAME} SET {assignments} WHERE abs(hashtext(id)::bigint) %% {ROUNDS} = {number}", [])  # noqa: S608
                if number % VACUUMED_EVERY:
                    execute(f"VACUUM {NAME}")
            after = lengths()
            sizes = " | ".join(f"{size:.0f}" for pair in zip(before, after, strict=True) for size in pair)
            yield f"| {change} | {filled} | {in_place():.0%} | {sizes} |"
            execute(f"DROP SCHEMA {SCHEMA} CASCADE")


def make(filled: int) -> None:
    """Fill a table of its own with the newest payments."""
    execute(f"CREATE SCHEMA {SCHEMA}")
    execute(
        f"CREATE TABLE {NAME} (LIKE {PLAIN_SCHEMA}.{TABLE} INCLUDING ALL) "
        f"WITH (fillfactor = {filled}, autovacuum_enabled = false)"
    )
    newest = f"SELECT * FROM {PLAIN_SCHEMA}.{TABLE} ORDER BY id DESC LIMIT {PAYMENTS}"  # noqa: S608
    execute(f"INSERT INTO {NAME} SELECT * FROM ({newest}) AS newest ORDER BY id")  # noqa: S608
    execute(f"VACUUM ANALYZE {NAME}")


def lengths() -> tuple[float, float]:
    """Return the bytes of the table and of its indexes, for each payment."""
    [found] = execute(f"SELECT pg_table_size('{NAME}'), pg_indexes_size('{NAME}'), count(*) FROM {NAME}")  # noqa: S608
    table, indexes, count = found
    return table / count, indexes / count


def in_place() -> float:
    """Return the share of updates that found room on the payment's own page and changed no index."""
    execute("SELECT pg_stat_force_next_flush()")
    [(hot, updated)] = execute(
        "SELECT n_tup_hot_upd, n_tup_upd FROM pg_stat_user_tables WHERE relid = %s::regclass", [NAME]
    )
    return float(hot / updated)
