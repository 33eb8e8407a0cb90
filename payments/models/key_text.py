"""The text of API keys: `live_` or `test_`, 32 random characters, and a checksum of six characters.

The checksum detects typing errors without a query, and lets a scanner recognize leaked keys in text. Clients of similar
APIs accept keys of this form: `(live|test)_\\w+`.
"""

import hashlib
import re
import secrets
import zlib

from payments.models.identifiers import ALPHABET, base62

RANDOM_CHARACTERS = 32
CHECKSUM_CHARACTERS = 6  # 62 ** 6 > 2 ** 32
HINT_CHARACTERS = 4
PATTERN = re.compile(rf"(?:live|test)_[A-Za-z0-9]{{{RANDOM_CHARACTERS + CHECKSUM_CHARACTERS}}}")


def new_key(mode: str) -> str:
    """Return a new key with 190 bits from the system's cryptographic source."""
    body = f"{mode}_" + "".join(secrets.choice(ALPHABET) for _ in range(RANDOM_CHARACTERS))
    return body + checksum(body)


def is_key(text: str) -> bool:
    """Return whether `text` has the form of a key and a correct checksum; not whether the key exists."""
    return PATTERN.fullmatch(text) is not None and text[-CHECKSUM_CHARACTERS:] == checksum(text[:-CHECKSUM_CHARACTERS])


def digest(key: str) -> str:
    """Return the SHA-256 of a key in hexadecimal, which is stored instead. A random key needs no salt."""
    return hashlib.sha256(key.encode()).hexdigest()


def hint(key: str) -> str:
    """Return the end of a key, by which staff recognize it. It is part of the checksum."""
    return key[-HINT_CHARACTERS:]


def checksum(body: str) -> str:
    return base62(zlib.crc32(body.encode()), digits=CHECKSUM_CHARACTERS)
