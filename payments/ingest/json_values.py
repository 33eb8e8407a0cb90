"""Valid JSON that some programs cannot read: deep nesting, duplicate names, large numbers, long texts and NUL."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from payments.ingest.cards.details import Path, is_sensitive_name
from payments.ingest.errors import FieldError, InvalidRecord
from payments.models import TEXT_BYTES_MAX
from payments.record import NAME_BYTES_MAX, NUMBER_CHARACTERS_MAX

# The API's responses add three levels around a record, and some clients read at most 64 levels (.NET).
NESTING_MAX = 60

NESTED_TOO_DEEPLY = "is nested too deeply"

# How much of each name, and of a path, an error has. This is longer than a card number with its separators and the part
# of a name that a message shows. So the search for card numbers sees all digits that a message could show.
PATH_CHARACTERS_MAX = 400

NUL = b"\\u0000"  # JSON allows no other way to write this character


@dataclass(frozen=True)
class InvalidValue:
    """Stands for an invalid value in parsed JSON. The parser cannot report it, because it does not know the path."""

    reason: str


DUPLICATE_NAME = InvalidValue("occurs more than once")
TOO_LARGE = InvalidValue("is a number that is too large")
TOO_MANY_DIGITS = InvalidValue(f"is a number of more than {NUMBER_CHARACTERS_MAX} characters")

TEXT_TOO_LONG = f"is longer than {TEXT_BYTES_MAX} bytes in UTF-8"
NAME_TOO_LONG = f"has a name of more than {NAME_BYTES_MAX} bytes in UTF-8"


def parse_json(text: bytes, *, on_mark: Callable[[InvalidValue], object] = bool) -> Any:
    """Return the value in `text`, numbers as their text.

    Duplicate names, infinite and long numbers are an `InvalidValue`; `on_mark` is called for each.

    :raises InvalidRecord: the value is nested too deeply
    """
    read_number = partial(mark_number, on_mark=on_mark)
    try:
        return json.loads(
            text.decode(),
            object_pairs_hook=partial(mark_duplicates, on_mark=on_mark),
            parse_int=read_number,
            parse_float=read_number,
        )
    except RecursionError:
        raise InvalidRecord.of(None, NESTED_TOO_DEEPLY) from None


def mark_duplicates(pairs: list[tuple[str, Any]], *, on_mark: Callable[[InvalidValue], object]) -> dict[str, Any]:
    """Return an object with `DUPLICATE_NAME` as the value of names that occur more than once."""
    members = dict(pairs)
    if len(members) < len(pairs):
        on_mark(DUPLICATE_NAME)
        counts = Counter(name for name, _ in pairs)
        members.update((name, DUPLICATE_NAME) for name, count in counts.items() if count > 1)
    return members


def mark_number(number: str, *, on_mark: Callable[[InvalidValue], object]) -> str | InvalidValue:
    """Return a number's text, or a mark if it is infinite as a floating-point number, or too long."""
    if math.isinf(float(number)):
        mark = TOO_LARGE
    elif len(number) > NUMBER_CHARACTERS_MAX:
        mark = TOO_MANY_DIGITS
    else:
        return number
    on_mark(mark)
    return mark


def find_invalid_values(text: bytes) -> Iterator[FieldError]:
    """Yield the errors in valid JSON, except for long texts.

    :raises InvalidRecord: the value is nested too deeply
    """
    marks: list[InvalidValue] = []
    value = parse_json(text, on_mark=marks.append)
    if marks or NUL in text or text.count(b"{") + text.count(b"[") > NESTING_MAX:
        yield from search((), value)


def search(path: Path, value: Any, *, depth: int = 1) -> Iterator[FieldError]:
    """Yield the errors in parsed JSON; `path` leads to `value`."""
    if depth > NESTING_MAX and isinstance(value, dict | list):
        raise InvalidRecord.of(None, NESTED_TOO_DEEPLY)
    if isinstance(value, InvalidValue):
        yield FieldError(join(path), value.reason)
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from search((*path, name), name, depth=depth)
            yield from search((*path, name), inner, depth=depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from search(path, inner, depth=depth + 1)
    elif isinstance(value, str) and "\0" in value:
        yield FieldError(join(path).replace("\0", ""), "must not contain the character NUL")


def find_long_texts(path: Path, value: Any) -> Iterator[FieldError]:
    """Yield the texts and names in parsed JSON that are too long; `path` leads to `value`."""
    if isinstance(value, str):
        if is_longer(value, TEXT_BYTES_MAX):
            yield FieldError(join(path), TEXT_TOO_LONG)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if is_longer(name, NAME_BYTES_MAX):
                yield FieldError(join((*path, name)), NAME_TOO_LONG)
            yield from find_long_texts((*path, name), inner)
    elif isinstance(value, list):
        for inner in value:
            yield from find_long_texts(path, inner)


def is_longer(text: str, bytes_max: int) -> bool:
    return len(text.encode(errors="surrogatepass")) > bytes_max


def join(path: Path) -> str:
    """Return the names of a path with dots. It is short: a record can have many errors below a long name.

    It ends with the name of a security code: a name below it may be the code.
    """
    names = [name[:PATH_CHARACTERS_MAX] for name in path]
    secret = next((depth for depth, name in enumerate(names) if is_sensitive_name(name)), len(names))
    return ".".join(names[: secret + 1])[:PATH_CHARACTERS_MAX]
