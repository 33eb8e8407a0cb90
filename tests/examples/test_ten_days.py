"""The programs fill a service for ten days in which everything fails that can fail. The servers own the clock."""

import json
import logging
import random
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.examples.http_server import (
    BROKEN,
    LOST,
    RESET,
    TOO_MANY,
    TRUNCATED,
    UNAVAILABLE,
    Fault,
    Request,
)
from tests.examples.mollie_server import MollieServer
from tests.examples.programs import EXAMPLES, Provider, Setting, serving
from tests.examples.service_server import RelayedService, version_of
from tests.examples.stripe_server import StripeServer
from tests.support.scale import SEED, report, times
from tests.support.service import Service
from tests.support.waiting import SECONDS_MAX

pytestmark = [pytest.mark.once, pytest.mark.processes, pytest.mark.extended, pytest.mark.xdist_group("service")]

logger = logging.getLogger(__name__)

HISTORY = 900  # payments of 60 days
PAGE_RECORDS = 25
ORGANIZATIONS = count(9301)
WINDOW = timedelta(days=2)
OUTAGE = timedelta(days=3)  # the service is unavailable for longer than the window

QUICK_FAULTS = [TOO_MANY, UNAVAILABLE, BROKEN]
SLOW_FAULTS = [RESET, LOST, TRUNCATED]  # the program waits half a second


@dataclass
class Shop:
    """A shop whose payments change at random, between the runs and while the program reads."""

    provider: Provider
    chance: random.Random
    done: Counter[str] = field(default_factory=Counter)

    def begin(self) -> None:
        provider, end = self.provider, self.provider.now
        for number in range(HISTORY):
            provider.now = end - timedelta(days=60) * (1 - number / HISTORY)
            provider.create()
            if self.chance.random() < 0.8:
                self.settle()
        provider.now = end

    def act(self) -> None:
        """Let seconds pass, and something happen."""
        self.provider.now += timedelta(seconds=self.chance.randrange(1, 30))
        actions = [self.create, self.settle, self.refund, self.charge_back, self.end_late]
        [action] = self.chance.choices(actions, weights=[8, 8, 3, 1, 1])
        if action():
            self.done["payments" if action == self.create else "changes"] += 1

    def create(self) -> bool:
        return bool(self.provider.create())

    def settle(self) -> bool:
        """End a payment of the last days. Older ones stay open: only the window finds them at Mollie."""
        start = "open" if isinstance(self.provider, MollieServer) else "pending"
        recent = list(self.provider.payments.values())[-60:]
        candidates = [payment["id"] for payment in recent if payment["status"] == start and self.age(payment) < WINDOW]
        if not candidates:
            return False
        paid = "paid" if start == "open" else "succeeded"
        self.provider.set_status(self.chance.choice(candidates), self.chance.choice([paid, paid, "failed"]))
        return True

    def age(self, payment: Any) -> timedelta:
        return self.provider.now - self.provider.created(payment)

    def refund(self) -> bool:
        return self.change_paid(lambda id_: self.provider.refund(id_, 1_000))

    def charge_back(self) -> bool:
        return self.change_paid(self.provider.charge_back)

    def change_paid(self, change: Callable[[str], object]) -> bool:
        """Change a payment of any age that has money left."""
        payment = self.chance.choice(list(self.provider.payments.values()))
        if self.provider.remaining(payment) < 1_000:
            return False
        self.done["changes outside the window"] += self.age(payment) > WINDOW
        change(payment["id"])
        return True

    def end_late(self) -> bool:
        """End a dispute or a refund."""
        provider = self.provider
        if isinstance(provider, StripeServer):
            candidates = [id_ for id_, dispute in provider.lists["disputes"].items() if dispute["status"] != "lost"]
            end: Callable[[str], None] = provider.lose_dispute
        else:
            refunds = [refund for refund in provider.lists["refunds"].values() if refund["status"] == "pending"]
            candidates = [refund["id"] for refund in refunds if self.age(refund) < WINDOW]
            end = provider.fail_refund
        if not candidates:
            return False
        end(self.chance.choice(candidates))
        return True


@dataclass
class Simulation:
    """Runs of a program with faults, and what they did."""

    days: int
    interval: timedelta
    setting: Setting
    chance: random.Random
    figures: Counter[str] = field(default_factory=Counter)
    process: subprocess.Popen[str] | None = None
    requests_until_kill: int | None = None
    is_out: bool = False

    def __post_init__(self) -> None:
        self.hours = self.interval / timedelta(hours=1)
        self.shop = Shop(self.setting.provider, self.chance, self.figures)
        self.shop.begin()

    def arm(self) -> None:
        for server in (self.setting.provider, self.setting.service):
            server.chaos = self.fault
            server.before, server.after, server.sent = (self.may_kill, self.may_kill, self.may_kill_later)
        self.setting.service.chaos = lambda: UNAVAILABLE if self.is_out else self.fault()
        self.setting.provider.before = self.before_page

    def disarm(self) -> None:
        for server in (self.setting.provider, self.setting.service):
            server.chaos = lambda: None
            server.before = server.after = server.sent = lambda _: None

    def fault(self) -> Fault | None:
        kind = self.chance.random()
        if kind > 0.08:
            return None
        self.figures["faults"] += 1
        if kind < 0.005:
            self.setting.provider.faults = [BROKEN] * 7  # more than the program repeats
        return self.chance.choice(SLOW_FAULTS if kind < 0.012 else QUICK_FAULTS)

    def before_page(self, request: Request) -> None:
        self.may_kill(request)
        if self.chance.random() < 0.5 * self.hours:
            self.shop.act()

    def may_kill(self, _: Request) -> None:
        if self.requests_until_kill is not None and self.process:
            self.requests_until_kill -= 1
            if self.requests_until_kill == 0:
                self.process.kill()

    def may_kill_later(self, request: Request) -> None:
        """Kill the program after it has got the response: before it moves the state, within that, or afterwards."""
        if self.requests_until_kill == 1:
            time.sleep(self.chance.random() * 0.01)
        self.may_kill(request)

    def run(self) -> None:
        """Run the program once, with another beside it at times."""
        versions = self.versions()
        self.requests_until_kill = self.chance.randrange(1, 20) if self.chance.random() < 0.25 else None
        with self.setting.start(self.setting.sending) as process:
            self.process = process
            if self.chance.random() < 0.05:
                self.count(self.setting.start(self.setting.sending))
            self.count(process)
        if process.returncode == 0:
            self.figures["late"] += sum(self.is_late(id_, version) for id_, version in versions.items())

    def count(self, process: subprocess.Popen[str]) -> None:
        _, stderr = process.communicate(timeout=SECONDS_MAX)
        assert "Traceback" not in stderr, stderr
        names = {0: "complete", 1: "failed", 75: "second", -9: "killed"}
        self.figures[f"{names[process.returncode]} runs"] += 1

    def versions(self) -> dict[str, int]:
        """Return the versions of the payments that a run must at least send, if it succeeds.

        A run that continues the first one may leave newer payments and changes to the next run.
        """
        state = self.setting.state
        if state.exists() and json.loads(state.read_text())["cursor"]:
            return {}
        with self.setting.provider.lock:
            return {id_: version_of(payment) for id_, payment in self.setting.provider.payments.items()}

    def is_late(self, id_: str, version: int) -> bool:
        record = self.setting.service.records.get(f"pt_{id_}")
        return record is None or version_of(record) < version

    def simulate(self) -> None:
        """Run the program for days, then once without faults. Count the differences."""
        provider, end = self.setting.provider, self.setting.provider.now + timedelta(days=self.days)
        outage_end = end - timedelta(days=1)
        self.arm()
        while provider.now < end:
            self.is_out = outage_end - OUTAGE < provider.now < outage_end
            self.run()
            following = provider.now + self.interval
            with provider.lock:  # a request of a killed program may not have ended
                for _ in range(self.chance.randrange(1 + round(8 * self.hours))):
                    self.shop.act()
                provider.now = max(provider.now, following)
        self.disarm()
        done = subprocess.run(self.setting.sending, env=self.setting.variables, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        self.compare()

    def compare(self) -> None:
        expected, records = self.setting.expected(), self.setting.service.records
        stale = sum(records[id_] != record for id_, record in expected.items() if id_ in records)
        self.figures["missing"] = len(expected.keys() - records.keys())
        self.figures["duplicates"] = len(records.keys() - expected.keys()) + self.setting.service.repeated
        self.figures["stale"] = stale + self.setting.service.older
        self.figures["payments at the end"] = len(records)

    @property
    def differences(self) -> dict[str, int]:
        return {name: self.figures[name] for name in ("missing", "duplicates", "stale", "late")}


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)


def simulate(setting: Setting, *, days: int, interval: timedelta) -> Simulation:
    setting.options = ["--days", str(WINDOW.days)]
    simulation = Simulation(days, interval, setting, random.Random(SEED))  # noqa: S311
    simulation.simulate()
    logger.info("%s: %s", setting.name, dict(simulation.figures))
    report(f"{setting.name}: {dict(simulation.figures)}")
    return simulation


@pytest.fixture
def relayed(service: Service) -> RelayedService:
    """Return a server before the deployed service, with an organization of its own."""
    organization = next(ORGANIZATIONS)
    service.create_organization(organization)
    key = service.create_api_key(organization=organization, mode="test", scope="import")
    return RelayedService(key, organization=str(organization), deployed=service)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", [MollieServer, StripeServer])
def test_service_has_all_payments_after_ten_days_of_faults(
    kind: type[Provider], relayed: RelayedService, tmp_path: Path
) -> None:
    with serving(kind(page_records=PAGE_RECORDS), tmp_path, relayed) as setting:
        done = simulate(setting, days=10, interval=timedelta(minutes=times(120, long=5)))

    assert done.differences == {"missing": 0, "duplicates": 0, "stale": 0, "late": 0}
    assert sorted(relayed.exported()) == sorted(relayed.expected())
    assert all(done.figures[f"{name} runs"] for name in ("complete", "failed", "second", "killed"))
    assert done.figures["changes outside the window"] > 10


def test_deployed_service_refuses_single_payments(relayed: RelayedService, tmp_path: Path) -> None:
    with serving(MollieServer(), tmp_path, relayed) as setting:
        refused = setting.provider.create()
        setting.provider.create()
        setting.provider.payments[refused]["description"] = "4242 4242 4242 4242"
        done = setting.send()

        assert re.fullmatch(rf"Mollie: {refused}: description: .*\nRefused payments: 1\..*\n", done.stderr)
        assert (done.status, len(relayed.exported())) == (1, 1)


def test_deployed_service_refuses_another_organization(relayed: RelayedService, tmp_path: Path) -> None:
    with serving(MollieServer(), tmp_path, relayed) as setting:
        payment = setting.provider.create()
        setting.organization = "1"
        done = setting.send()

        assert re.match(f"Mollie: {payment}: organizationId: ", done.stderr)
        assert (done.status, relayed.exported()) == (1, [])


def test_deployed_service_refuses_a_key_that_reads(relayed: RelayedService, tmp_path: Path) -> None:
    key = relayed.deployed.create_api_key(organization=int(relayed.organization), mode="test")
    with serving(MollieServer(), tmp_path, relayed) as setting:
        setting.provider.create()
        setting.environment = {"PAYMENTS_KEY": key}
        done = setting.send()

        assert re.fullmatch(r"The service responded with the status 403\. .+\n", done.stderr)
        assert (done.status, setting.state.exists()) == (1, False)


class Mistake(NamedTuple):
    """A mistake in a program: the file, and a text of it that is replaced."""

    file: str
    old: str
    new: str


WRITE = "        refused |= checked(output.write(page.records), refused)\n"
STATE_FIRST = Mistake("fetching.py", WRITE, f"        state.save(until, refused=[])\n{WRITE}")
NO_WINDOW = Mistake("fetching.py", "timedelta(days=days)", "timedelta(0)")
NO_CHANGES = Mistake("fetching.py", "provider.changes(state.until, since) if since and state.until else {}", "{}")
FIRST_PAGE_ONLY = Mistake("fetching.py", WRITE, f"{WRITE}        break\n")
OWN_CLOCK = Mistake("fetching.py", "until = until or provider.api.now", "until = datetime.now().astimezone()")
COPY_OF_EVENT = Mistake(
    "fetch_stripe.py", "(event): None ", '(event): "captured" in event["data"]["object"] and event["data"]["object"] '
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "mistake"),
    [
        pytest.param(MollieServer, STATE_FIRST, id="mollie-state-first"),
        pytest.param(StripeServer, STATE_FIRST, id="stripe-state-first"),
        pytest.param(MollieServer, NO_WINDOW, id="mollie-no-window"),
        pytest.param(MollieServer, NO_CHANGES, id="mollie-no-changes"),
        pytest.param(StripeServer, NO_CHANGES, id="stripe-no-changes"),
        pytest.param(MollieServer, FIRST_PAGE_ONLY, id="mollie-first-page-only"),
        pytest.param(StripeServer, OWN_CLOCK, id="stripe-own-clock"),
        pytest.param(StripeServer, COPY_OF_EVENT, id="stripe-copy-of-event"),
    ],
)
def test_simulation_detects_a_mistake(kind: type[Provider], mistake: Mistake, tmp_path: Path) -> None:
    examples = shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    file = examples / mistake.file
    assert file.read_text().count(mistake.old) == 1
    file.write_text(file.read_text().replace(mistake.old, mistake.new))

    with serving(kind(page_records=PAGE_RECORDS), tmp_path) as setting:
        setting.examples = examples
        done = simulate(setting, days=5, interval=timedelta(hours=3))

    assert any(done.differences.values())
