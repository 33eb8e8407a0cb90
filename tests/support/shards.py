"""Check whether a statement names the organization of its payments or states: Citus sends it only to their shards.

The statements are those of the list with the example of each filter.
"""

from collections.abc import Iterator

import sqlglot
from sqlglot import exp

from payments.listing.filters import FILTERS

TABLES = ("payments_payment", "payments_accessstate", "payments_change", "payments_statuschange")
COLUMN = "organization_id"


def parts_without_organization(sql: str) -> list[str]:
    """Return the parts of a statement that use a distributed table without naming the organization.

    :raises ParseError: if the statement cannot be parsed
    """
    # This clause of CREATE TABLE copies the columns and reads no row.
    parsed = sql.replace("(LIKE payments_payment INCLUDING DEFAULTS)", "")
    is_analyze = parsed.startswith("ANALYZE ")  # an import runs it only if the table is not distributed
    if is_analyze or not uses_distributed_table(parsed):
        return []
    statement = sqlglot.parse_one(parsed, dialect="postgres")
    return [part.sql(dialect="postgres") for table, part in uses(statement) if not names_organization(table, part)]


def uses_distributed_table(sql: str) -> bool:
    return any(table in sql for table in TABLES)


def uses(statement: exp.Expr) -> Iterator[tuple[exp.Table, exp.Expr]]:
    """Yield each use of a distributed table, with the part of the statement that should name the organization."""
    for table in statement.find_all(exp.Table):
        if table.name in TABLES:
            part = table.find_ancestor(exp.Select, exp.Update, exp.Delete, exp.Insert, exp.Copy)
            yield table, part or statement


def names_organization(table: exp.Table, part: exp.Expr) -> bool:
    match part:
        case exp.Insert():
            conflict = part.args.get("conflict")
            return has_column(part.this.expressions) and (
                conflict is None or has_column(conflict.args["conflict_keys"])
            )
        case exp.Copy():
            return has_column(part.this.expressions)
        case _:
            return any(is_organization(condition, table) for condition in conditions(part))


def has_column(expressions: list[exp.Expr]) -> bool:
    return COLUMN in {name.name for expression in expressions for name in expression.find_all(exp.Identifier)}


def conditions(part: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the conditions that every row must meet."""
    if where := part.args.get("where"):
        yield from conjuncts(where.this)
    for join in part.args.get("joins", ()):
        if not join.side and (on := join.args.get("on")):  # an outer join keeps rows that do not meet its condition
            yield from conjuncts(on)


def conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    bare = condition.unnest()
    if isinstance(bare, exp.And):
        yield from conjuncts(bare.left)
        yield from conjuncts(bare.right)
    else:
        yield bare


def is_organization(condition: exp.Expr, table: exp.Table) -> bool:
    """Return whether a condition compares the table's organization with literals, by = or IN."""
    match condition:
        case exp.EQ(this=exp.Column() as column, expression=value):
            values = [value.unnest()]
        case exp.In(this=exp.Column() as column, expressions=values):
            pass
        case _:
            return False
    is_own_column = column.name == COLUMN and column.table in {"", table.alias_or_name}
    return is_own_column and bool(values) and all(isinstance(value, exp.Literal) for value in values)


def example_parameters(name: str) -> dict[str, str]:
    """Return the example of a filter."""
    example = FILTERS[name].example
    if isinstance(example, dict):
        return {f"{name}[{key}]": value for key, value in example.items()}
    parameters = {name: ",".join(example) if isinstance(example, list) else str(example)}
    return parameters | ({"currency": "EUR"} if name.startswith("amount") else {})
