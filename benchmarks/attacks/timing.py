"""What the time of a response reveals about other organizations."""

from benchmarks.attacks.target import OFTEN_PAYMENTS, RARE_PAYMENTS, Outcome, Target
from tests.support.load import Load, median_milliseconds

REQUESTS = 25
NOISE_MAX = 1.5


def metadata_filter(target: Target) -> Outcome:
    """Filter by metadata pairs that another organization has often, rarely and never."""
    loads = {
        order: Load(target.service.port, target.attacker_key, f"/v2/payments?metadata%5Border%5D={order}")
        for order in ("often", "rarely", "never")
    }
    medians = median_milliseconds(loads, requests=REQUESTS)
    happened = "medians " + ", ".join(f"{order} {median:.1f} ms" for order, median in medians.items())
    return Outcome(
        f"{REQUESTS} requests each for a pair that another organization has {OFTEN_PAYMENTS} times, {RARE_PAYMENTS} "
        "times and never",
        happened,
        max(medians.values()) < NOISE_MAX * min(medians.values()),
    )
