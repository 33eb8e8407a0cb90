"""Texts that this service creates: IDs of payments and of changes, which begin with the time, and API keys.

An API key is `live_` or `test_`, 32 random characters, and a checksum of six characters. The checksum detects typing
errors without a query, and lets a scanner recognize leaked keys in text. Clients of similar APIs accept keys of this
form: `(live|test)_\\w+`.
"""

import hashlib
import re
import secrets
import zlib
from datetime import UTC, datetime, timedelta

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
PAIRS = [first + second for first in ALPHABET for second in ALPHABET]

RANDOM_BYTES = 10
DIGITS = 22  # 62 ** 22 > 2 ** 128
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)

# A change ID fits into a signed 64-bit integer: 32 bits of seconds since 1970, and 31 random bits.
CHANGE_RANDOM_BITS = 31

RANDOM_CHARACTERS = 32
CHECKSUM_CHARACTERS = 6  # 62 ** 6 > 2 ** 32
HINT_CHARACTERS = 4
KEY = re.compile(rf"(?:live|test)_[A-Za-z0-9]{{{RANDOM_CHARACTERS + CHECKSUM_CHARACTERS}}}")


def make_payment_id(moment: datetime, randomness: bytes) -> str:
    """Return `pt_` and 22 base-62 digits: 48 bits of milliseconds since 1970 and 80 random bits, as in a ULID.

    The order of these IDs as text is the order of their creation times.
    """
    milliseconds = (moment - EPOCH) // timedelta(milliseconds=1)
    number = int.from_bytes(milliseconds.to_bytes(6, "big") + randomness, "big")
    return f"pt_{base62(number, digits=DIGITS)}"


def make_change_id(moment: datetime, randomness: int) -> int:
    """Return the ID of a change that is made now.

    Payments that are changed one after the other are neighbours in the index of change IDs, so writes of a large table
    touch few of its pages. Of two changes in the same second, the IDs are equal with a probability of 1 in 2^31. Then
    the change feed repeats their payments. If one follows the other, the revision stays the same.
    """
    return (moment - EPOCH) // SECOND << CHANGE_RANDOM_BITS | randomness


def change_time(change_id: int) -> datetime:
    """Return the time of a change, in whole seconds."""
    return EPOCH + (change_id >> CHANGE_RANDOM_BITS) * SECOND


def base62(number: int, *, digits: int) -> str:
    """Return `number` in base 62 with a fixed number of digits, the most significant first."""
    text = ""
    while len(text) < digits:
        number, pair = divmod(number, len(PAIRS))
        text = PAIRS[pair] + text
    return text[-digits:]


def new_key(mode: str) -> str:
    """Return a new key with 190 bits from the system's cryptographic source."""
    body = f"{mode}_" + "".join(secrets.choice(ALPHABET) for _ in range(RANDOM_CHARACTERS))
    return body + checksum(body)


def is_key(text: str) -> bool:
    """Return whether `text` has the form of a key and a correct checksum; not whether the key exists."""
    return KEY.fullmatch(text) is not None and text[-CHECKSUM_CHARACTERS:] == checksum(text[:-CHECKSUM_CHARACTERS])


def digest(key: str) -> str:
    """Return the SHA-256 of a key in hexadecimal, which is stored instead. A random key needs no salt."""
    return hashlib.sha256(key.encode()).hexdigest()


def hint(key: str) -> str:
    """Return the end of a key, by which staff recognize it. It is part of the checksum."""
    return key[-HINT_CHARACTERS:]


def checksum(body: str) -> str:
    return base62(zlib.crc32(body.encode()), digits=CHECKSUM_CHARACTERS)
