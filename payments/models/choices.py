"""The values of a payment's mode, status and sequence type."""

from django.db import models


class Mode(models.TextChoices):
    """Live payments moved money; test payments did not."""

    LIVE = "live"
    TEST = "test"


class Status(models.TextChoices):
    """The state of a payment."""

    OPEN = "open"
    PENDING = "pending"
    AUTHORIZED = "authorized"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"
    EXPIRED = "expired"


# Payments without a final status: few at any time, and clients ask for them often.
IN_PROGRESS = frozenset({Status.OPEN, Status.PENDING, Status.AUTHORIZED})


class SequenceType(models.TextChoices):
    """A payment's role in a subscription."""

    ONEOFF = "oneoff"
    FIRST = "first"
    RECURRING = "recurring"
