"""Django's default password hasher, which lets requests hash one at a time."""

from django.contrib.auth.hashers import PBKDF2PasswordHasher

from payments.runtime import password_queue
from payments.runtime.process import process


class QueuedPasswordHasher(PBKDF2PasswordHasher):
    """Hashes like Django's hasher, in the turn of the request. It checks and upgrades hashes with `encode` too."""

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        """Return the encoded hash. A command hashes at once, a request in its turn.

        :raises TooManyPasswordChecks: if the request gets no turn
        """
        with process.deadlines.database.paused():
            password_queue.wait_for_turn()
            return super().encode(password, salt, iterations)
