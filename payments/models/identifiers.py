"""IDs that this service creates: those of payments, and those of changes. Both begin with the time."""

from datetime import UTC, datetime, timedelta

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
RANDOM_BYTES = 10
DIGITS = 22  # 62 ** 22 > 2 ** 128
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)

# A change ID fits into a signed 64-bit integer: 32 bits of seconds since 1970, and 31 random bits.
CHANGE_RANDOM_BITS = 31


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
    for _ in range(digits):
        number, digit = divmod(number, 62)
        text = ALPHABET[digit] + text
    return text
