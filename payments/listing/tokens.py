"""Tokens of the change feed: a position in the feed, as opaque text for a link.

A token also names the newest change that the reader has seen. If the database is restored from a backup, or a failover
loses transactions, the database may no longer know this change. Then the reader may have missed payments: they moved
from a later part of the feed to an earlier one. The position alone would not show this.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct

from payments.models import PAYMENT_ID, Access, Mode

INT64_MAX: Final = 2**63 - 1

# Numbers of changes. A page adds to them, and the result must be a signed 64-bit integer.
Number: TypeAlias = Annotated[int, Meta(ge=0, le=2**62)]
Integer: TypeAlias = Annotated[int, Meta(ge=-INT64_MAX, le=INT64_MAX)]
PaymentId: TypeAlias = Annotated[str, Meta(pattern=rf"\A\Z|{PAYMENT_ID}")]

TOKEN_LENGTH_MAX = 200
TOKEN = rf"\A[A-Za-z0-9_-]{{1,{TOKEN_LENGTH_MAX}}}\Z"


class InvalidToken(ValueError):
    """The text is not a token, or is one of another organization or mode."""


class Newest(Struct, frozen=True, array_like=True):
    """The newest change of an organization and mode, which identifies a state of its payments.

    Number and ID are 0 if no change has been numbered. `epoch` is explained at `AccessState`.
    """

    epoch: Integer = 0
    number: Number = 0
    change_id: Integer = 0


NEVER_CHANGED = Newest()


class FeedPosition(Struct, frozen=True, array_like=True):
    """A position in the feed of an organization and mode: after the payment `after` within the change `number`.

    With an empty `after`, it is before all payments of the change.
    """

    organization_id: Annotated[int, Meta(ge=1, le=INT64_MAX)]
    mode: str
    newest: Newest = NEVER_CHANGED
    number: Number = 1
    after: PaymentId = ""

    @property
    def access(self) -> Access:
        return Access(self.organization_id, self.mode)


encode_position = msgspec.msgpack.Encoder().encode
decode_position = msgspec.msgpack.Decoder(FeedPosition).decode


def format_token(position: FeedPosition) -> str:
    return urlsafe_b64encode(encode_position(position)).rstrip(b"=").decode()


def parse_token(text: str) -> FeedPosition:
    """Return the position that a token stands for.

    :raises InvalidToken: the text is not a token
    """
    if not re.fullmatch(TOKEN, text):
        raise InvalidToken
    try:
        position: FeedPosition = decode_position(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except ValueError as error:  # of base64 and of msgspec
        raise InvalidToken from error
    # Base64 has several texts for the same bytes. Only one of them is the token.
    if position.mode not in Mode.values or format_token(position) != text:
        raise InvalidToken
    return position
