"""The errors of a record, each with its field and the reason."""

import logging
from collections.abc import Iterable, Sequence
from traceback import walk_tb
from typing import NamedTuple

from payments.ingest.cards.details import exposes_card_number, find_in_text
from payments.ingest.cards.folding import fold
from payments.ingest.cards.numbers import DIGITS_MIN, count_digits
from payments.runtime.terminal import printable

logger = logging.getLogger(__name__)

# A message contains at most this many characters of a field's name, errors of a record, and names in a list.
NAME_CHARACTERS_MAX = 80
ERRORS_MAX = 10
NAMES_MAX = 10
HIDDEN_NAME = "a name that may contain card data"


class FieldError(NamedTuple):
    """An error of a record. The field is None if the record as a whole is invalid."""

    field: str | None
    reason: str

    def __str__(self) -> str:
        return f"{printable_name(self.field)}: {self.reason}" if self.field else self.reason


class InvalidRecord(Exception):
    """A record is invalid. `errors` are all errors of its fields, in the order of the record."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(map(str, self.reported)))

    @classmethod
    def of(cls, field: str | None, reason: str) -> "InvalidRecord":
        return cls([FieldError(field, reason)])

    @property
    def reported(self) -> tuple[FieldError, ...]:
        """Return the errors as far as a message repeats them."""
        more = len(self.errors) - ERRORS_MAX
        return self.errors if more <= 0 else (*self.errors[:ERRORS_MAX], FieldError(None, f"and {more} more errors"))


def unreadable(bug: Exception) -> InvalidRecord:
    """Return the error of a record whose reading raised an unexpected exception, and log where in our code.

    The text of the exception is in no message: it may contain card data.

    :raises MemoryError: the exception is none of the record
    """
    if isinstance(bug, MemoryError):
        raise bug
    places = ((frame.f_globals.get("__name__", ""), line) for frame, line in walk_tb(bug.__traceback__))
    [*_, place] = [f"{module}:{line}" for module, line in places if module.startswith("payments.")]
    logger.error("A record cannot be read: %s at %s", type(bug).__name__, place)
    return InvalidRecord.of(None, "cannot be read")


def printable_name(field: str) -> str:
    """Return a field's name as a message may repeat it: in one line. A record may have any names."""
    if find_in_text(field) or count_digits(fold(field)) >= DIGITS_MIN:
        return HIDDEN_NAME
    name = field if len(field) <= NAME_CHARACTERS_MAX else f"{field[:NAME_CHARACTERS_MAX]}…"
    text = printable(name)
    # An escape such as \u2028 may have digits before those of the name.
    return HIDDEN_NAME if count_digits(text) >= DIGITS_MIN else text


def printable_names(names: Sequence[str]) -> str:
    """Return a list of names as a message may repeat it. Neighbouring names may be the groups of a card number."""
    text = ", ".join(map(printable_name, names[:NAMES_MAX]))
    if exposes_card_number(text):
        return "names that may contain card data"
    return text if len(names) <= NAMES_MAX else f"{text} and {len(names) - NAMES_MAX} more"
