"""Attacks by staff with few permissions."""

import random
import re
from collections import Counter
from urllib.parse import quote

from benchmarks.attacks.target import Impact, Outcome, Target
from tests.support.admin_site import paths
from tests.support.hostile_queries import QUERIES

FIELDS = ("name", "id", "digest", "username", "password", "payments__description", "organization__name", "hint", "mode")
LOOKUPS = ("regex", "iregex", "icontains", "range", "in", "isnull", "startswith", "gt", "year", "date")
REGULAR_EXPRESSIONS = ("(", "(a+)+$", "(.*a){20}", "\0")
CATASTROPHIC = r"^(([a-zA-Z0-9])+.)+([a-zA-Z0-9]{2,4})+$|(x+x+)+y"
RANDOM_REQUESTS = 500
PRINTABLE = re.compile("[!-~]{0,8000}")


def look_ups(target: Target) -> Outcome:
    """Look up by regular expressions that take long, and by fields that the pages do not offer."""
    queries = [
        f"{name}__{lookup}={quote(value)}" for name in FIELDS for lookup in LOOKUPS for value in REGULAR_EXPRESSIONS
    ]
    queries += [f"name__regex={quote(CATASTROPHIC)}"] * 10
    impacts: list[Impact] = []
    with target.victim(impacts):
        statuses = Counter(
            target.request(f"/admin/payments/organization/?{query}", user="viewer").status for query in queries
        )
    [impact] = impacts
    happened = f"statuses {dict(statuses)}; the victim's slowest request took {impact.slowest_ms:.0f} ms"
    return Outcome(f"{len(queries)} look-ups", happened, max(statuses) < 500 and not impact.failed)


def random_requests(target: Target) -> Outcome:
    """Request pages of the admin with random query strings."""
    rng = random.Random(1)  # noqa: S311  repeatable, not secret
    queries = [query for query in QUERIES if PRINTABLE.fullmatch(query)]  # a client can send only these
    statuses: Counter[int] = Counter()
    for _ in range(RANDOM_REQUESTS):
        path = f"{rng.choice(paths())}?{rng.choice(queries)}"
        statuses[target.request(path, user="viewer").status] += 1
    return Outcome(f"{RANDOM_REQUESTS} random requests", f"statuses {dict(statuses)}", max(statuses) < 500)


def form_sent_again(target: Target) -> Outcome:
    """Send the form of a new key again, as a browser does when its page is reloaded."""
    path = "/admin/payments/apikey/add/"
    page = target.request(path, user="root").body
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))
    form = {**hidden, "organization": "1", "mode": "live", "name": "Attack"}
    keys = [set(re.findall(r"live_\w{38}", target.request(path, user="root", form=form).body)) for _ in range(5)]
    created = sum(map(len, keys))
    return Outcome("the form of a new key, sent 5 times", f"{created} keys are shown", created == 1)
