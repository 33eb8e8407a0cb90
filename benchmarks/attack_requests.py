"""Attacks by single requests, files and settings. Each returns what the service did."""

import json
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

from django.contrib.auth.models import Group, User

from benchmarks.attack_target import PASSWORD, Outcome, Target
from payments.models import PaymentRead
from tests.support.admin_site import Staff
from tests.support.connecting import connected_to
from tests.support.lines import compact, record
from tests.support.oidc import TOKEN, Visitor, provider
from tests.support.ports import free_port
from tests.support.relay import Answer
from tests.support.service import workers
from tests.support.sql import execute, locked

CARD = "4242424242424242"
HOSTILE_TEXTS = (
    f"İA12 {CARD}",
    f"Kİ12 {CARD}",
    f"\u212aA12 {CARD}",
    "TR34 İSTANBUL KADIKOY",
    "\u017ft \u0131 İ \u212a",
    "\u200d" * 9,
)
SECURITY_CODES = (
    *(
        "cvv",
        "cardVerificationValue2",
        "cvv_code1",
        "cc_cvv",
        "iCVV",
        "dcvv",
        "cvc3",
        "securityCode2",
        "pinCode",
        "pin1",
    ),
    *("track2Equivalent", "trackTwo", "emvTrack2", "fullTrackData", "magStripeData", "CVV2Response", "\u0441vv"),
    *("card-verification", "Prüfziffer", "cryptogramme"),
)
DATES = (
    "?today=0001-01-01&period=90d",
    "?today=9999-12-31&q=today",
    "?today=0001-01-01&q=yesterday",
    "export.csv?today=0001-01-01&period=90d",
    "export.csv?today=9999-12-31&q=today",
)
LOOK_UPS = ("/admin/payments/organization/?name__regex=(a*)*b", "/admin/payments/apikey/?digest__startswith=a")
EARLY_ERRORS = ("/nonsense", "/admin/login/?\0", "/docs/nonsense")
SECURITY_HEADERS = {"content-security-policy", "x-frame-options", "referrer-policy", "x-content-type-options"}
ADDRESSES = (
    *(
        "a@evil.example@example.com",
        " root@example.com",
        "@example.com",
        '"a@evil.example"@example.com',
        "%@example.com",
    ),
    *(
        "<script>@example.com",
        "a\nb@example.com",
        "a@example.com\x00",
        f"{'a' * 300}@example.com",
        "a@EVIL.example.com.evil",
    ),
)
ID_TOKENS: Sequence[dict[str, Any]] = (
    *({"aud": ["evil", "payments"], "azp": "evil"}, {"aud": "evil"}, {"azp": "evil"}, {"nonce": "another"}),
    *(
        {"without": "exp"},
        {"exp": 1},
        {"header": {"alg": "none"}},
        {"sub": "x" * 10_000},
        {"iss": "https://evil.example"},
    ),
)
YEAR_SECONDS = 365 * 86_400
OPAQUE = "opaque-token-0123456789"
HOSTILE_NAME = "\x1b[31m\x9b2J\u202e\n.jsonl"
WRONG_PASSWORDS = 25
ATTEMPTS_MAX = 10
DEADLOCK_PAYMENTS = 20_000


def hostile_texts(target: Target) -> Outcome:
    """Import texts whose letters change their number when they are folded. None may end the import."""
    lines = [record(id=f"pt_text{number}", details={"x": text}) for number, text in enumerate(HOSTILE_TEXTS)]
    done = imported(target, lines, "--keep-going")
    is_harmless = "Traceback" not in done and CARD not in done
    return Outcome(f"{done.splitlines()[-1]}", is_harmless)


def security_codes(target: Target) -> Outcome:
    """Import security codes and tracks under many names. All must be refused."""
    lines = [
        record(id=f"pt_code{number}", details={name: "123" if "rack" not in name else "4242=2512"})
        for number, name in enumerate(SECURITY_CODES)
    ]
    done = imported(target, lines, "--keep-going")
    refused = done.count("security code")
    return Outcome(f"{refused} of {len(lines)} names were refused", refused == len(lines))


def file_names(target: Target) -> Outcome:
    """Import a file whose name has escape sequences. None may reach the terminal."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / HOSTILE_NAME
        path.write_bytes(b"{")
        done = target.service.run("import_payments", str(path))
    raw = [character for character in done.stdout + done.stderr if not (character.isprintable() or character == "\n")]
    return Outcome(f"{len(raw)} control characters reached the terminal", not raw and done.returncode == 1)


def imported(target: Target, records: list[dict[str, object]], *options: str) -> str:
    """Import records with a command, and return what it says."""
    lines = b"\n".join(json.dumps(values, ensure_ascii=True).encode() for values in records)
    return target.service.run("import_payments", "-", *options, input=lines.decode()).stderr


def deadlock(target: Target) -> Outcome:
    """Import the same payments twice at the same time, in opposite order."""
    lines = [compact(record(id=f"pt_dead{number}")) for number in range(DEADLOCK_PAYMENTS)]
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(2) as pool:
        files = [Path(directory) / name for name in ("forwards.jsonl", "backwards.jsonl")]
        files[0].write_bytes(b"\n".join(lines))
        files[1].write_bytes(b"\n".join(line.replace(b"Caf", b"caf") for line in reversed(lines)))
        done = list(pool.map(lambda file: target.service.run("import_payments", str(file)), files))
    repeated = sum("deadlock" in one.stderr for one in done)
    succeeded = sum(one.returncode == 0 for one in done)
    return Outcome(f"{succeeded} of 2 imports succeeded, {repeated} after a deadlock", succeeded == len(files))


def reads_of_staff(target: Target) -> Outcome:
    """Read payments through all doors of the admin. Each must leave a record, and a payment's page two."""
    doors = ("", "?q=secret", "export.csv", "export.jsonl?status=succeeded", "pt_5F110/change/")
    with connected_to(target.service.database_url):
        before = PaymentRead.objects.count()
    statuses = [target.get_as_staff(f"/admin/payments/payment/{door}")[0] for door in doors]
    with connected_to(target.service.database_url):
        records = PaymentRead.objects.count() - before
    is_harmless = records == len(doors) + 1 and set(statuses) == {HTTPStatus.OK}
    return Outcome(f"{records} records of {len(doors)} reads", is_harmless)


def dates(target: Target) -> Outcome:
    """Send dates at the limits of the calendar."""
    statuses = Counter(target.get_as_staff(f"/admin/payments/payment/{query}")[0] for query in DATES)
    return Outcome(f"statuses {dict(statuses)}", max(statuses) < HTTPStatus.INTERNAL_SERVER_ERROR)


def look_ups(target: Target) -> Outcome:
    """Send look-ups that the admin refuses. Each may write one line to the log."""
    start = len(target.log)
    statuses = [target.get_as_staff(path)[0] for path in LOOK_UPS]
    lines = target.log[start:].splitlines()
    longest = max(map(len, lines), default=0)
    is_harmless = len(lines) <= len(LOOK_UPS) and not any("traceback" in line for line in lines)
    return Outcome(f"statuses {statuses}, {len(lines)} lines of at most {longest} characters", is_harmless)


def early_errors(target: Target) -> Outcome:
    """Cause errors before a view runs. Their pages must have the headers of all pages."""
    responses = [target.get(path.replace("\0", "%00")) for path in EARLY_ERRORS]
    responses += [target.get("/docs/", Host="evil.example"), target.get("/docs/", Content_Type="x" * 999)]
    missing = {name for _, headers, _ in responses for name in SECURITY_HEADERS - {*map(str.lower, headers)}}
    _, headers, _ = target.get("/v2/payments/pt_unknown", Authorization=f"Bearer {target.attacker_key}")
    if "no-store" not in headers.get("cache-control", ""):
        missing.add("cache-control of problems")
    return Outcome(f"missing headers: {', '.join(sorted(missing)) or 'none'}", not missing)


def password_guesses(target: Target) -> Outcome:
    """Guess the old password in a stolen session."""
    visitor = Visitor(target.service)
    visitor.log_in("clerk", PASSWORD)
    new = {"new_password1": "x" * 20, "new_password2": "y" * 20}
    statuses = Counter(
        visitor.submit("/admin/password_change/", old_password=f"wrong {number}", **new).status_code
        for number in range(WRONG_PASSWORDS)
    )
    checked = WRONG_PASSWORDS - statuses[HTTPStatus.TOO_MANY_REQUESTS]
    return Outcome(f"{checked} of {WRONG_PASSWORDS} guesses were checked", checked <= ATTEMPTS_MAX)


def deactivated_user(target: Target) -> Outcome:
    """Use a session again after its user was deactivated and activated."""
    with connected_to(target.service.database_url):
        user = User.objects.create(username="leaver", is_staff=True, is_superuser=True)
        session = Staff.log_in(user).session

    def status_when(is_active: bool | None = None) -> int:  # noqa: FBT001
        if is_active is not None:
            with connected_to(target.service.database_url):
                user.is_active = is_active
                user.save()
        return target.get("/admin/", Cookie=f"sessionid={session}")[0]

    statuses = [status_when(), status_when(False), status_when(True)]  # noqa: FBT003
    return Outcome(f"statuses {statuses}", statuses == [HTTPStatus.OK, HTTPStatus.FOUND, HTTPStatus.FOUND])


def sign_ins(target: Target) -> Outcome:
    """Sign in at a hostile provider, with invalid addresses and ID tokens. No token may be logged."""
    with connected_to(target.service.database_url):
        Group.objects.get_or_create(name="staff")
    with provider() as hostile:
        settings = target.service.settings | hostile.settings(OIDC_NEW_USER_GROUP="staff")
        service = replace(target.service, port=free_port(), settings=settings)
        service.manage("migrate", "--verbosity", "0")  # the tables of django-allauth
        statuses = Counter[int]()
        with service.serving():
            for email in ADDRESSES:
                hostile.set_account("address", email=email)
                statuses[Visitor(service).sign_in("address").status_code] += 1
            hostile.set_account("ann")
            for changes in (*ID_TOKENS, {"iat": int(time.time()) + YEAR_SECONDS}):
                hostile.set_id_token(**changes)
                statuses[Visitor(service).sign_in("ann").status_code] += 1
            hostile.changes[TOKEN] = lambda _answer: Answer(400, {}, json.dumps({"access_token": OPAQUE}).encode())
            statuses[Visitor(service).sign_in("ann").status_code] += 1
    is_harmless = set(statuses) <= {HTTPStatus.FORBIDDEN, HTTPStatus.BAD_GATEWAY} and OPAQUE not in target.log
    return Outcome(f"statuses {dict(statuses)}", is_harmless)


def locked_sessions(target: Target) -> Outcome:
    """Lock the table of sessions, and log in."""
    with connected_to(target.service.database_url), locked("payments_staffsession"):
        status = target.log_in("clerk", PASSWORD, address="203.0.113.250")
    return Outcome(f"status {status}", status == HTTPStatus.SERVICE_UNAVAILABLE)


def session_settings(target: Target) -> Outcome:
    """Change settings of the database that SQL texts depend on, and search as staff on new connections."""
    if target.server is None:
        return Outcome("SQLite has no such settings", is_harmless=True)
    target.server.execute("ALTER DATABASE payments SET standard_conforming_strings = off")
    service = replace(target.service, port=free_port())
    try:
        with service.serving():
            changed = replace(target, service=service)
            searches = ("a\\'b", "\\", "it''s", '"\\""', "x\\n")
            statuses = Counter(
                changed.get_as_staff(f"/admin/payments/payment/?q={quote_all(text)}")[0] for text in searches
            )
    finally:
        target.server.execute("ALTER DATABASE payments RESET standard_conforming_strings")
    return Outcome(f"statuses {dict(statuses)}", set(statuses) <= {HTTPStatus.OK, HTTPStatus.BAD_REQUEST})


def quote_all(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


def page_for_developers(target: Target) -> Outcome:
    """Cause an error in the development server. Look for the password of the database in the page about it."""
    if target.server is None:
        return Outcome("SQLite has no password", is_harmless=True)
    url = target.service.database_url.replace("@", f":{PASSWORD}@")
    service = replace(target.service, database_url=url, port=free_port(), workers=1)
    service.settings = {**service.settings, "DEBUG": "true"}
    with connected_to(url):
        execute("ALTER TABLE payments_payment DROP CONSTRAINT payments_payment_metadata_check")
        execute("UPDATE payments_payment SET metadata = '5' WHERE id = 'pt_110'")
        with service.serving("sh", "-c", f"exec .venv/bin/python manage.py runserver 127.0.0.1:{service.port} >&2"):
            status, _, page = replace(target, service=service).get_as_staff("/admin/payments/payment/pt_5F110/change/")
    count = page.count(PASSWORD.encode())
    is_harmless = status == HTTPStatus.INTERNAL_SERVER_ERROR and b"Traceback" in page and not count
    return Outcome(f"status {status}, the page has {len(page)} bytes and the password {count} times", is_harmless)


def core_files(target: Target) -> Outcome:
    """Look at the limits of the workers. A core file would contain keys."""
    limits = [Path(f"/proc/{worker.pid}/limits").read_text() for worker in workers(target.service)]
    sizes = {match[1] for limit in limits if (match := re.search(r"Max core file size +(\S+)", limit))}
    return Outcome(f"core files of at most {', '.join(sorted(sizes))} bytes", sizes == {"0"})


ATTACKS: Mapping[str, Callable[[Target], Outcome]] = {
    "hostile texts": hostile_texts,
    "security codes": security_codes,
    "names of files": file_names,
    "deadlock of imports": deadlock,
    "reads by staff": reads_of_staff,
    "dates": dates,
    "look-ups": look_ups,
    "early errors": early_errors,
    "password guesses": password_guesses,
    "deactivated user": deactivated_user,
    "sign-ins": sign_ins,
    "locked sessions": locked_sessions,
    "settings of the database": session_settings,
    "core files": core_files,
    "page for developers": page_for_developers,
}
