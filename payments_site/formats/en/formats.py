"""Dates and times (ISO 8601)."""

DATE_FORMAT = "Y-m-d"
DATETIME_FORMAT = "Y-m-d H:i:s T"  # the admin shows times in UTC, and says so
