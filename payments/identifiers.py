"""IDs of payments that this service creates. Their order as text is the order of their creation times."""

from datetime import UTC, datetime, timedelta

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
RANDOM_BYTES = 10
DIGITS = 22  # 62 ** 22 > 2 ** 128
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def make_payment_id(moment: datetime, randomness: bytes) -> str:
    """Return `pt_` and 22 base-62 digits: 48 bits of milliseconds since 1970 and 80 random bits, as in a ULID."""
    milliseconds = (moment - EPOCH) // timedelta(milliseconds=1)
    number = int.from_bytes(milliseconds.to_bytes(6, "big") + randomness, "big")
    return f"pt_{base62(number, digits=DIGITS)}"


def base62(number: int, *, digits: int) -> str:
    """Return `number` in base 62 with a fixed number of digits, the most significant first."""
    text = ""
    for _ in range(digits):
        number, digit = divmod(number, 62)
        text = ALPHABET[digit] + text
    return text
