"""An authenticator app (TOTP, RFC 6238), written without the code that it tests."""

import base64
import hmac
import time

PERIOD_SECONDS = 30


class App:
    """An app with a key. The service accepts the codes of the previous, the current and the next period.

    `code` returns the code of the current period first, then the code of the next one. Both remain valid if the next
    period begins meanwhile.
    """

    def __init__(self, secret: str) -> None:
        self.key = base64.b32decode(secret.replace(" ", ""))
        self.counter = int(time.time()) // PERIOD_SECONDS - 1

    def code(self) -> str:
        """Return a code that was not returned before."""
        self.counter += 1
        return self.code_of(self.counter)

    def last_code(self) -> str:
        """Return the code that `code` has returned last."""
        return self.code_of(self.counter)

    def wrong_code(self) -> str:
        return self.code_of(self.counter + 1000)

    def code_of(self, counter: int) -> str:
        digest = hmac.digest(self.key, counter.to_bytes(8), "sha1")
        start = digest[-1] & 15
        number = int.from_bytes(digest[start : start + 4]) & (2**31 - 1)
        return f"{number % 10**6:06}"
