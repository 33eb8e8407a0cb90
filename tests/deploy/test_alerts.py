"""The alerts of deploy/prometheus-rules.yml fire, and are silent, as Prometheus' own program evaluates them."""

import pytest
import yaml

from tests.support.commands import output_of
from tests.support.processes import ROOT

pytestmark = pytest.mark.once

CASES = ROOT / "tests/deploy/alerts.yml"


@pytest.mark.extended
@pytest.mark.processes
@pytest.mark.needs("promtool")
def test_alerts_fire_at_saturation_and_not_at_idle() -> None:
    assert "SUCCESS" in output_of(["promtool", "test", "rules", CASES])


def test_every_alert_has_a_firing_and_a_silent_case() -> None:
    rules = yaml.safe_load((ROOT / "deploy/prometheus-rules.yml").read_text())
    alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    cases = [case for test in yaml.safe_load(CASES.read_text())["tests"] for case in test["alert_rule_test"]]

    assert {case["alertname"] for case in cases if case["exp_alerts"]} == alerts
    assert {case["alertname"] for case in cases if not case["exp_alerts"]} == alerts
