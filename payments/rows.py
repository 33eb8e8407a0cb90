"""A payment as the database writes it out: texts in the record's own form, which nobody takes apart again."""

from datetime import datetime
from typing import Any, TypeAlias

from django.db.models import F, Func, TextField, Value
from django.db.models.functions import Cast


class DecimalText(Func):
    """An amount with its two decimal places, or null."""

    arity = 1
    output_field = TextField()
    template = "%(expressions)s::text"

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, Any]:
        """Spare a null: `printf` would write it as 0.00."""
        template = "CASE WHEN %(expressions)s IS NOT NULL THEN printf('%%%%.2f', %(expressions)s) END"
        return self.as_sql(compiler, connection, template=template, **context)


class SecondsText(Func):
    """A moment as seconds since 1970, or null."""

    arity = 1
    output_field = TextField()
    template = "date_part('epoch', %(expressions)s)::text"

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, Any]:
        return self.as_sql(compiler, connection, template="strftime('%%%%s', %(expressions)s)", **context)


class TimeText(Func):
    """A moment in UTC, to the millisecond, or null."""

    arity = 1
    output_field = TextField()
    template = "to_char(%(expressions)s AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS')"

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, Any]:
        template = "strftime('%%%%Y-%%%%m-%%%%dT%%%%H:%%%%M:%%%%f', %(expressions)s)"
        return self.as_sql(compiler, connection, template=template, **context)


NONE = Value(None, output_field=TextField())

Row: TypeAlias = tuple[Any, ...]

COLUMNS = (
    F("id"),
    F("mode"),
    DecimalText("amount"),
    F("amount_currency"),
    DecimalText("amount_net"),
    F("amount_net_currency"),
    DecimalText("amount_remaining"),
    F("amount_remaining_currency"),
    F("description"),
    F("method"),
    F("redirect_url"),
    F("webhook_url"),
    F("status"),
    Cast("organization_id", TextField()),
    F("sequence_type"),
    F("metadata"),
    F("details"),
    TimeText("created_at"),
    TimeText("expires_at"),
    TimeText("paid_at"),
    F("customer_id"),
)


def record_time(moment: datetime) -> str:
    """Return what `TimeText` makes of a moment in UTC."""
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds")
