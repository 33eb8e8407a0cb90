"""The limit for log lines that clients can cause."""

from payments.runtime.log_limit import INTERVAL_SECONDS, TEXTS_MAX, LogLimit


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_text_is_allowed_once_a_minute() -> None:
    clock = Clock()
    limit = LogLimit(clock)

    first = [limit.allows("a"), limit.allows("a")]
    clock.seconds += INTERVAL_SECONDS - 1
    before_the_end = limit.allows("a")
    clock.seconds += 1
    after_the_end = [limit.allows("a"), limit.allows("a")]

    assert (first, before_the_end, after_the_end) == ([True, False], False, [True, False])


def test_few_different_texts_are_allowed() -> None:
    limit = LogLimit(Clock())

    allowed = [limit.allows(str(number)) for number in range(TEXTS_MAX + 5)]

    assert allowed == [True] * TEXTS_MAX + [False] * 5
    assert len(limit.texts) == TEXTS_MAX
