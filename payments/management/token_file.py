"""The file with the token that an export of changes starts at, and that it replaces."""

import os
from pathlib import Path

from django.core.management.base import CommandError

from payments.models import Access
from payments.tokens import InvalidToken, Position, format_token, parse_token


def read_position(file: Path, access: Access) -> Position:
    """Return the position in the file; the beginning of the feed if there is no file.

    :raises CommandError: the file cannot be read, or does not contain a token of the organization and mode
    """
    try:
        text = file.read_text(errors="replace").strip()
    except FileNotFoundError:
        if not file.parent.is_dir():
            raise CommandError(f"{file.parent}: this directory does not exist.") from None
        return Position(*access)
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from error
    try:
        position = parse_token(text)
    except InvalidToken:
        raise CommandError(f"{file}: this is not a token of the change feed.") from None
    if position.access != access:
        organization_id, mode = position.access
        raise CommandError(f"{file}: this token is of organization {organization_id} ({mode}).")
    return position


def write_position(file: Path, position: Position) -> None:
    """Replace the file by one with the token, at once: after a crash, the file has the old or the new token.

    :raises CommandError: the file cannot be written
    """
    new = file.with_name(f"{file.name}.new")
    try:
        with new.open("w") as stream:
            stream.write(f"{format_token(position)}\n")
            stream.flush()
            os.fsync(stream.fileno())
        new.replace(file)
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from error
