"""Whether a statement says whose payments it reads or writes: then Citus sends it to the shards of those alone."""

from collections.abc import Iterator

import sqlglot
from sqlglot import exp

TABLE = "payments_payment"
COLUMN = "organization_id"


def unplaced(sql: str) -> list[str]:
    """Return the parts of a statement that take part of payments, and of which nothing says whose.

    :raises ParseError: where it cannot be read
    """
    reading = sql.replace(f"(LIKE {TABLE} INCLUDING DEFAULTS)", "")  # which is about columns, and reads no row
    if TABLE not in reading:
        return []
    statement = sqlglot.parse_one(reading, dialect="postgres")
    return [part.sql(dialect="postgres") for table, part in uses(statement) if not is_placed(table, part)]


def uses(statement: exp.Expr) -> Iterator[tuple[exp.Table, exp.Expr]]:
    """Yield where payments are named, each with the part of the statement that should say whose."""
    for table in statement.find_all(exp.Table):
        if table.name == TABLE:
            part = table.find_ancestor(exp.Select, exp.Update, exp.Delete, exp.Insert, exp.Copy)
            yield table, part or statement


def is_placed(table: exp.Table, part: exp.Expr) -> bool:
    match part:
        case exp.Insert():
            conflict = part.args.get("conflict")
            return names(part.this.expressions) and (conflict is None or names(conflict.args["conflict_keys"]))
        case exp.Copy():
            return names(part.this.expressions)
        case _:
            return any(places(condition, table) for condition in conditions(part))


def names(columns: list[exp.Expr]) -> bool:
    return COLUMN in {column.name for each in columns for column in each.find_all(exp.Identifier)}


def conditions(part: exp.Expr) -> Iterator[exp.Expr]:
    """Yield what must all be true of a row."""
    if where := part.args.get("where"):
        yield from conjuncts(where.this)
    for join in part.args.get("joins", ()):
        if not join.side and (on := join.args.get("on")):  # an outer join keeps rows of which it is not true
            yield from conjuncts(on)


def conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    bare = condition.unnest()
    if isinstance(bare, exp.And):
        yield from conjuncts(bare.left)
        yield from conjuncts(bare.right)
    else:
        yield bare


def places(condition: exp.Expr, table: exp.Table) -> bool:
    """Tell whether a condition is that the organization is this one, or one of these."""
    match condition:
        case exp.EQ(this=exp.Column() as column, expression=value):
            values = [value.unnest()]
        case exp.In(this=exp.Column() as column, expressions=values):
            pass
        case _:
            return False
    is_own = column.name == COLUMN and column.table in {"", table.alias_or_name}
    return is_own and bool(values) and all(isinstance(value, exp.Literal) for value in values)
