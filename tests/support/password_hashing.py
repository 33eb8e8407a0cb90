"""A fast hasher that records its hashes."""

from typing import ClassVar

from django.contrib.auth.hashers import PBKDF2PasswordHasher

from payments.access.password_hasher import SerialPasswordHasher

QUICK_HASHER = "tests.support.password_hashing.QuickHasher"


class RecordingHasher(PBKDF2PasswordHasher):
    """Django's hasher with few iterations. It records each password that it hashes."""

    iterations = 10
    hashed: ClassVar[list[str]] = []

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        self.hashed.append(password)
        return super().encode(password, salt, iterations)


class QuickHasher(SerialPasswordHasher, RecordingHasher):
    """The service's hasher with few iterations."""
