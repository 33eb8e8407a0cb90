"""The programs that read the payments of other systems, and send them to a service."""

import fcntl
import importlib
import json
import os
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.examples.http_server import (
    BROKEN,
    LOST,
    RESET,
    TOO_MANY,
    TRUNCATED,
    UNAVAILABLE,
    Fault,
    HttpServer,
    Reply,
    Request,
)
from tests.examples.mollie_server import MollieServer
from tests.examples.programs import EXAMPLES, Provider, Setting, serving
from tests.examples.stripe_server import StripeServer
from tests.support.commands import run_command
from tests.support.tools import needs_linux

pytestmark = [pytest.mark.once]

TRIES = 7  # of a request


@pytest.fixture
def setting(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Setting]:
    """Return a shop with six payments in pages of two. Each is 40 days older than the one before."""
    monkeypatch.syspath_prepend(EXAMPLES)
    kind = getattr(request, "param", MollieServer)
    with serving(kind(page_records=2), tmp_path) as setting:
        for number in range(6):
            setting.provider.create(created=setting.provider.now - timedelta(days=40 * number))
        yield setting


each_provider = pytest.mark.parametrize("setting", [MollieServer, StripeServer], indirect=True)
only_stripe = pytest.mark.parametrize("setting", [StripeServer], indirect=True)


def oldest(provider: Provider) -> str:
    return list(provider.payments)[-1]


def paths(server: HttpServer) -> list[str]:
    return [request.path for request in server.requests]


def ids(records: list[Any]) -> list[str]:
    return [record["id"] for record in records]


def fail(setting: Setting) -> str:
    """Run the program, which must fail in one line. Return the line. It has no key."""
    done = setting.send()
    assert (done.status, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert setting.provider.key not in done.stderr
    assert setting.service.key not in done.stderr
    return done.stderr.rstrip("\n")


def succeed(setting: Setting) -> None:
    """Run the program. It must send all missing payments."""
    assert setting.send() == (0, "", "")
    assert setting.service.records == setting.expected()
    assert (setting.service.repeated, setting.service.older) == (0, 0)


# Positions


@each_provider
def test_first_run_reads_all_pages(setting: Setting) -> None:
    succeed(setting)

    assert len(setting.service.requests) == 3


@each_provider
def test_without_a_service_each_payment_is_printed_once(setting: Setting) -> None:
    assert sorted(ids(setting.print())) == sorted(setting.expected())


@each_provider
def test_later_run_reads_only_the_window(setting: Setting) -> None:
    setting.print()
    setting.provider.now += timedelta(minutes=5)
    new = setting.provider.create()
    first = next(iter(setting.provider.payments))

    assert ids(setting.print())[:2] == [f"pt_{new}", f"pt_{first}"]
    setting.options = ["--days", "365"]
    assert len(setting.print()) == 7


@each_provider
def test_payments_that_arrive_between_pages_are_read(setting: Setting) -> None:
    def arrive(_: Request) -> None:
        setting.provider.now += timedelta(minutes=2)
        setting.provider.create()

    setting.provider.before = arrive
    setting.send()
    setting.provider.before = lambda _: None

    succeed(setting)

    assert len(setting.service.records) == 10


def test_no_payments_are_no_error(tmp_path: Path) -> None:
    with serving(MollieServer(), tmp_path) as setting:
        assert [setting.print(), setting.print()] == [[], []]


# Changes


@each_provider
def test_change_in_the_window_is_read(setting: Setting) -> None:
    setting.send()
    setting.provider.now += timedelta(days=2)
    setting.provider.set_status(next(iter(setting.provider.payments)), "failed")

    succeed(setting)


def test_refunds_and_chargebacks_of_old_payments_are_read(setting: Setting) -> None:
    provider = setting.provider
    assert isinstance(provider, MollieServer)
    old, older = list(provider.payments)[-2:]
    for payment in (old, older):
        provider.set_status(payment, "paid")
    setting.send()

    refund = provider.refund(old, 2_000)
    succeed(setting)
    provider.now += timedelta(days=20)
    provider.fail_refund(refund)
    provider.charge_back(older)
    succeed(setting)


@only_stripe
def test_events_of_old_charges_are_read(setting: Setting) -> None:
    provider = setting.provider
    assert isinstance(provider, StripeServer)
    charge = oldest(provider)
    provider.set_status(charge, "succeeded")
    setting.send()

    provider.refund(charge, 2_000)
    succeed(setting)
    dispute = provider.charge_back(charge)
    succeed(setting)
    provider.now += timedelta(days=28)
    provider.lose_dispute(dispute)
    succeed(setting)
    assert setting.service.records[f"pt_{charge}"]["amountRemaining"]["value"] == "-20.00"


@only_stripe
def test_all_charges_are_read_again_when_stripe_has_forgotten_events(setting: Setting) -> None:
    assert isinstance(setting.provider, StripeServer)
    setting.send()
    setting.provider.refund(oldest(setting.provider), 2_000)
    setting.provider.now += timedelta(days=31)

    succeed(setting)


# Failures that end


@each_provider
@pytest.mark.parametrize("fault", [TOO_MANY, UNAVAILABLE, BROKEN])
def test_request_that_fails_for_a_while_is_repeated(setting: Setting, fault: Fault) -> None:
    setting.provider.faults = [fault, None, fault, fault]
    setting.service.faults = [fault, None, fault]

    succeed(setting)


@pytest.mark.extended
@pytest.mark.parametrize("fault", [RESET, LOST, TRUNCATED, Fault(Reply(429, {})), Fault(Reply(200, None))])
def test_request_without_a_time_for_the_next_is_repeated(setting: Setting, fault: Fault) -> None:
    setting.provider.faults = [fault, None, fault]
    setting.service.faults = [fault, None, fault]

    succeed(setting)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "0"}, 0),
        ({"Retry-After": " 7 "}, 7),
        ({"Retry-After": "Sat, 31 Jan 2026 00:01:00 GMT", "Date": "Sat, 31 Jan 2026 00:00:00 GMT"}, 60),
        ({"Retry-After": "Sat, 31 Jan 2026 00:00:00 GMT", "Date": "Sat, 31 Jan 2026 00:01:00 GMT"}, 0),
        ({"Retry-After": "Sat, 31 Jan 2026 00:01:00 GMT"}, 4),
        ({"Retry-After": "soon", "Date": "Sat, 31 Jan 2026 00:01:00 GMT"}, 4),
        ({}, 4),
    ],
)
def test_wait_is_that_of_retry_after(monkeypatch: pytest.MonkeyPatch, headers: dict[str, str], seconds: float) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    response = importlib.import_module("apis").Response(429, headers, {})

    assert response.retry_after(otherwise=4) == seconds


def test_run_does_not_wait_for_hours(setting: Setting) -> None:
    setting.provider.faults = [Fault(Reply(429, {}, {"Retry-After": "3601"}))]

    assert fail(setting).endswith("responded with the status 429.")


@each_provider
def test_first_run_that_ends_early_continues(setting: Setting) -> None:
    setting.provider.faults = [None, None, *[BROKEN] * TRIES]
    assert fail(setting).endswith("responded with the status 500.")
    setting.provider.requests.clear()

    succeed(setting)

    assert len(setting.provider.requests) == 1


@each_provider
def test_changes_during_a_first_run_that_ends_early_are_read(setting: Setting) -> None:
    setting.provider.faults = [None, None, *[BROKEN] * TRIES]
    setting.send()
    setting.provider.set_status(next(iter(setting.provider.payments)), "failed")
    setting.send()

    succeed(setting)


def test_without_a_service_a_run_that_ends_early_has_no_effect(setting: Setting) -> None:
    setting.provider.faults = [None, None, *[BROKEN] * TRIES]
    assert setting.run(setting.command).status == 1
    assert not setting.state.exists()

    assert sorted(ids(setting.print())) == sorted(setting.expected())


def test_position_stays_until_the_service_has_the_payments(setting: Setting) -> None:
    setting.send()
    position = setting.state.read_text()
    setting.provider.now += timedelta(days=1)
    setting.provider.create()
    setting.service.faults = [UNAVAILABLE] * TRIES
    assert fail(setting) == "The service responded with the status 503."
    assert setting.state.read_text() == position

    succeed(setting)


def test_run_that_cannot_replace_the_state_is_repeated(setting: Setting) -> None:
    blocking = Path(f"{setting.state}.new")
    blocking.mkdir()
    assert fail(setting) == f"{setting.state} cannot be used: Is a directory."
    assert len(setting.service.records) == 2
    blocking.rmdir()

    succeed(setting)


@needs_linux
@pytest.mark.processes
def test_position_stays_if_the_lines_cannot_be_written(setting: Setting) -> None:
    command = [*setting.command]

    process = run_command(["sh", "-c", '"$@" >/dev/full', "sh", *command], env=setting.variables)

    assert (process.returncode, process.stderr) == (1, "stdout: No space left on device\n")
    assert not setting.state.exists()


def test_second_run_beside_the_first_ends_with_75(setting: Setting) -> None:
    with Path(f"{setting.state}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        assert setting.send() == (75, "", f"Another run uses {setting.state}.\n")

    succeed(setting)


@pytest.mark.processes
def test_terminal_shows_the_progress(setting: Setting) -> None:
    master, slave = os.openpty()

    subprocess.run(setting.sending, env=setting.variables, stderr=slave, check=True)

    os.close(slave)
    assert os.read(master, 1000).split(b"\r\n")[:2] == [b"Mollie: 2 payments written", b"Mollie: 4 payments written"]
    os.close(master)


# Payments that are refused


@each_provider
def test_payment_that_cannot_be_converted_does_not_stop_the_others(setting: Setting) -> None:
    payment = setting.provider.payments[oldest(setting.provider)]
    amount = payment.pop("amount")

    done = setting.send()

    refusal = f"{setting.name.title()}: {payment['id']}: amount: is missing\n"
    assert done == (1, "", f"{refusal}Refused payments: 1. Later runs try them again.\n")
    assert setting.send() == done
    assert len(setting.service.records) == 5
    payment["amount"] = amount
    succeed(setting)


def test_without_a_service_the_position_stays_before_a_refused_payment(setting: Setting) -> None:
    setting.provider.payments[oldest(setting.provider)]["amount"] = 4242424242424242.5
    done = setting.run(setting.command)

    assert (done.status, len(done.stdout.splitlines()), "4242" in done.stderr) == (1, 5, False)
    assert not setting.state.exists()


def test_payment_that_the_service_refuses_does_not_stop_the_others(setting: Setting) -> None:
    payment = setting.provider.payments[oldest(setting.provider)]
    payment["description"] = "4242 4242 4242 4242"
    refusal = f"{setting.name.title()}: {payment['id']}: description: "

    done = setting.send()

    assert (done.status, done.stdout, done.stderr.startswith(refusal)) == (1, "", True)
    assert len(setting.service.records) == 5
    payment["description"] = "Books"
    succeed(setting)


def test_payment_that_is_gone_is_reported_once(setting: Setting) -> None:
    payment = setting.provider.payments[oldest(setting.provider)]
    del payment["amount"]
    setting.send()
    del setting.provider.payments[payment["id"]]

    assert setting.send() == (0, "", f"{setting.name.title()}: {payment['id']}: does not exist any more\n")
    succeed(setting)


def test_too_many_refused_payments_end_the_run(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("fetching"), "REFUSED_MAX", 3)
    setting.service.organization = "8"

    done = setting.send()

    reason = "Check --organization, and the organization and the mode of the key in PAYMENTS_KEY."
    assert (done.status, done.stderr.splitlines()[-1]) == (1, f"More than 3 payments were refused. {reason}")


def test_parts_that_are_too_large_are_halved(setting: Setting) -> None:
    setting.provider.page_records = 100
    setting.service.body_bytes_max = 1000

    succeed(setting)


def test_payment_that_is_too_large_is_refused(setting: Setting) -> None:
    setting.service.body_bytes_max = 10

    assert "is too large\nRefused payments: 6. " in setting.send().stderr


# Mistakes of an operator


@each_provider
def test_wrong_keys_are_named_by_their_variables(setting: Setting) -> None:
    provider = "MOLLIE_TOKEN" if setting.name == "mollie" else "STRIPE_KEY"
    setting.environment[provider] = "test_wrong"
    assert fail(setting) == f"{setting.name.title()} refuses the key in {provider}. Correct it."

    setting.environment = {"PAYMENTS_KEY": "wrong"}
    assert fail(setting) == "The service refuses the key in PAYMENTS_KEY. Correct it."


@pytest.mark.parametrize("value", ["", " ", "secret key", "secret\nkey", "sécret"])
def test_missing_or_damaged_key_is_not_sent(setting: Setting, value: str) -> None:
    setting.environment = {"PAYMENTS_KEY": value}

    assert fail(setting) == "Set PAYMENTS_KEY to a key without spaces."
    assert setting.provider.requests == []


@pytest.mark.parametrize("content", ["", "[]", "{}", "[" * 100_000, '{"source": 1}', '{"until": "x"}', "\0"])
def test_damaged_state_is_one_line(setting: Setting, content: str) -> None:
    setting.state.write_text(content)

    assert fail(setting) == f"{setting.state} is damaged. Delete it to read all payments again."


@pytest.mark.parametrize("member", ["until", "refused", "cursor"])
def test_damaged_member_of_the_state_is_one_line(setting: Setting, member: str) -> None:
    setting.send()
    setting.state.write_text(json.dumps(json.loads(setting.state.read_text()) | {member: 7}))

    assert fail(setting) == f"{setting.state} is damaged. Delete it to read all payments again."


def test_state_of_another_destination_is_not_used(setting: Setting) -> None:
    setting.print()

    name = f"{setting.name.title()} (test), organization 7,"
    other = f"Use another file for {name} {setting.service.url}."
    assert fail(setting) == f"{setting.state} belongs to {name} stdout. {other}"


def test_directory_of_the_state_must_exist(setting: Setting) -> None:
    setting.state_name = "missing/state.json"

    assert fail(setting) == f"{setting.state} cannot be used: No such file or directory."


@pytest.mark.parametrize(
    "options",
    [
        ["--organization", "x"],
        ["--days", "0"],
        ["--send", "ftp://pay.example"],
        ["--send", "https://key@pay.example"],
        ["--send", "https://pay.example:x"],
        ["--send", "https://["],
        ["--what"],
    ],
)
def test_wrong_arguments_end_with_2(setting: Setting, options: list[str]) -> None:
    setting.options = options

    assert setting.run(setting.command).status == 2


@each_provider
@pytest.mark.parametrize("url", ["file:///etc/passwd", "api.example"])
def test_wrong_address_of_the_provider_is_one_line(setting: Setting, url: str) -> None:
    setting.environment[f"{setting.name.upper()}_URL"] = url

    assert fail(setting).startswith(f"Set {setting.name.upper()}_URL to a URL such as https://api.{setting.name}.com")


# Unexpected responses


def test_redirect_is_not_followed(setting: Setting) -> None:
    setting.provider.faults = [Fault(Reply(302, {}, {"Location": f"{setting.service.url}/v1/charges"}))]

    assert fail(setting).endswith("responded with the status 302.")
    assert setting.service.requests == []


@pytest.mark.parametrize("reply", [Reply(200, {"read": 1}), Reply(200, []), Reply(404, {}), Reply(422, {"errors": []})])
def test_response_that_is_not_the_services_does_not_count(setting: Setting, reply: Reply) -> None:
    setting.service.faults = [Fault(reply)]

    assert fail(setting) == f"The service responded with the status {reply.status}. Check --send."
    assert not setting.state.exists()


def test_detail_of_the_service_is_shown(setting: Setting) -> None:
    setting.service.faults = [Fault(Reply(403, {"detail": "This key cannot import.\x1b[2J"}))]

    assert fail(setting) == "The service responded with the status 403. 'This key cannot import.\\x1b[2J'"


@each_provider
@pytest.mark.parametrize("document", [{}, [], 7, {"data": [{"object": "charge"}], "_embedded": {"payments": [7]}}])
def test_page_of_another_form_is_one_line(setting: Setting, document: Any) -> None:
    setting.provider.faults = [Fault(Reply(200, document))]

    assert " did not return a page of " in fail(setting)
    assert setting.service.requests == []


def test_link_without_an_id_is_not_the_end(setting: Setting) -> None:
    page = setting.provider.respond(Request("GET", "/v2/payments", {}, {"Authorization": setting.provider.key}, b""))
    page.document["_links"]["next"]["href"] = "https://api.mollie.com/v2/payments?page=2"
    setting.provider.faults = [Fault(page)]

    assert fail(setting) == "Mollie: the link to the next page has no ID."


@only_stripe
def test_empty_page_before_the_last_is_not_the_end(setting: Setting) -> None:
    setting.provider.faults = [Fault(Reply(200, {"data": [], "has_more": True}))]

    assert fail(setting) == "Stripe: a page is empty, but it is not the last one."
