"""API keys as text: `live_` or `test_`, 32 random characters, and six that check the rest.

The check lets a typo be told, and a leaked key be found in a text, without the database.
"""

import hashlib
import re
import secrets
import zlib

from payments.identifiers import ALPHABET, base62

RANDOM_CHARACTERS = 32
CHECK_DIGITS = 6  # 62 ** 6 > 2 ** 32
FORM = re.compile(rf"(?:live|test)_[A-Za-z0-9]{{{RANDOM_CHARACTERS + CHECK_DIGITS}}}")


def new_key(mode: str) -> str:
    """Return a key that nobody has had: 190 bits from the system's cryptographic source."""
    body = f"{mode}_" + "".join(secrets.choice(ALPHABET) for _ in range(RANDOM_CHARACTERS))
    return body + checksum(body)


def is_key(text: str) -> bool:
    """Tell whether `text` has a key's form and its checksum is right; not whether such a key was ever made."""
    return FORM.fullmatch(text) is not None and text[-CHECK_DIGITS:] == checksum(text[:-CHECK_DIGITS])


def digest(key: str) -> str:
    """Return what is stored in the key's place: its SHA-256, in hexadecimal. A key is too random to need a salt."""
    return hashlib.sha256(key.encode()).hexdigest()


def checksum(body: str) -> str:
    return base62(zlib.crc32(body.encode()), digits=CHECK_DIGITS)
