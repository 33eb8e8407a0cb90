"""Names and arguments from outside cannot control the terminal of an operator. Data on stdout stays as it is."""

import os
from pathlib import Path

import pytest
from pytest_django import Settings

from payments.runtime.terminal import printable
from tests.support.commands import manage
from tests.support.connecting import connected_to
from tests.support.factories import ApiKeyFactory, OrganizationFactory, PaymentFactory
from tests.support.lines import line
from tests.support.migrated import fresh_database

pytestmark = pytest.mark.once

# Clears the screen, sets a title; C1 control characters; a line break; bidi overrides; a byte that is not UTF-8.
HOSTILE = "a\x1b[2J\x1b]0;x\x07\x9b31m\x85\r\nb\u202ec\u2066\u2028\udcff"
SHOWN = r"a\x1b[2J\x1b]0;x\x07\x9b31m\x85\r\nb\u202ec\u2066\u2028\udcff"
NAME = HOSTILE.removesuffix("\udcff")  # a database stores no such byte


@pytest.fixture
def url(tmp_path: Path) -> object:
    with fresh_database(tmp_path) as url, connected_to(url):
        yield url


@pytest.mark.parametrize(
    "command",
    [
        ["import_payments", HOSTILE],
        ["import_payments", "--unknown", HOSTILE],
        ["export_payments", "--status", HOSTILE],
        ["export_payments", "--organization", "1", "--mode", "live", "--changes", "--token-file", f"{HOSTILE}/x"],
        ["back_up_database", f"/nowhere/{HOSTILE}"],
        ["revoke_api_key", HOSTILE],
        ["list_api_keys", "--organization", HOSTILE],
        ["create_organization", "1", "--name", HOSTILE],
        ["create_organization", HOSTILE, "--name", "x"],
        ["create_api_key", "--organization", "1", "--mode", "live", "--name", HOSTILE],
        ["anonymize_payments", "--customer", HOSTILE],
        ["anonymize_payments", HOSTILE],
        ["reset_sign_in", NAME],
        ["distribute_payments", HOSTILE],
        ["show_version", HOSTILE],
        ["start", HOSTILE],
        ["delete_old_payment_reads", HOSTILE],
        ["create_demo_payments", HOSTILE],
        [HOSTILE],
    ],
    ids=lambda command: printable(" ".join(command)),
)
def test_argument_is_printed_without_control_characters(command: list[str], url: str, settings: Settings) -> None:
    OrganizationFactory.create(id=1)
    settings.PAYMENTS_SECOND_FACTOR = "optional"

    done = manage(*command, url=url)

    assert done.returncode in {1, 2}
    assert all(text.isprintable() for text in (done.stdout + done.stderr).split("\n"))


def test_name_of_a_file_is_escaped_in_messages(tmp_path: Path, url: str) -> None:
    file = tmp_path / HOSTILE
    file.write_bytes(b"nonsense\n" + line(mode="x"))

    assert manage("import_payments", f"{file}", url=url).stderr.startswith(f"{tmp_path}/{SHOWN}:1: is neither JSON")
    file.write_bytes(line() + b"\n" + line(mode="x"))
    assert manage("import_payments", f"{file}", url=url).stderr.startswith(f"{tmp_path}/{SHOWN}:1: organizationId")


def test_stored_names_are_escaped(url: str) -> None:
    key = ApiKeyFactory.create(name=NAME)

    listed, revoked = manage("list_api_keys", url=url), manage("revoke_api_key", f"{key.pk}", url=url)

    assert SHOWN.removesuffix(r"\udcff") in listed.stdout
    assert SHOWN.removesuffix(r"\udcff") in revoked.stderr


def test_exported_data_keeps_its_characters(url: str) -> None:
    PaymentFactory.create(description="\x85b\u202ec\u2066\u2028")

    assert '"\x85b\u202ec\u2066\u2028"' in manage("export_payments", url=url).stdout


def test_undecodable_name_is_imported(tmp_path: Path, url: str) -> None:
    file = os.fsencode(tmp_path) + b"/\xff.jsonl"
    Path(os.fsdecode(file)).write_bytes(line())

    assert manage("import_payments", "--create-organizations", os.fsdecode(file), url=url).returncode == 0
