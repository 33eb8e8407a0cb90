"""Django's default password hasher, which lets a worker hash one password at a time."""

from django.contrib.auth.hashers import PBKDF2PasswordHasher

from payments.runtime.process import process


class SerialPasswordHasher(PBKDF2PasswordHasher):
    """Hashes like Django's hasher. A hash occupies a processor for half a second on purpose."""

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        """Return the encoded hash. Checking a password and upgrading a hash call this too.

        The wait for other requests is short: the shares of pages and of addresses limit their number.
        """
        with process.deadline.paused(), process.shares.hashing:
            return super().encode(password, salt, iterations)
