"""Times as other systems write them, in the form of a record."""

from datetime import UTC, datetime

from payments.record import record_time

RECORD_TIME_LENGTH = len("2018-03-20T13:28:37.123")


def to_record_time(text: str) -> str:
    """Return a time in UTC with three fractional digits. Without an offset, it is in UTC already.

    :raises ValueError: the day is not in the calendar
    :raises OverflowError: in UTC, the time is outside of the years 1 to 9999
    """
    moment = datetime.fromisoformat(text)
    if len(text) == RECORD_TIME_LENGTH and moment.tzinfo is None:
        return text
    return record_time(moment.astimezone(UTC) if moment.tzinfo else moment)
