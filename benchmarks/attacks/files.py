"""Hostile files for an import, and formulas in an export."""

import csv
import io
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.attacks.target import Outcome, Target
from tests.support.card_data import read_cases
from tests.support.lines import line

COMBINING_MARKS = "\u0301\u0316" * 60_000
RECORD_SECONDS_MAX = 5.0
INTERRUPT_SECONDS_MAX = 2.0
FORMULAS = ("=1+1", "Order;=1", "Order\t+1", "Order\n@SUM(A1)", "\uff1d1+1", "'=1", ";'-1")
FORMULA_CHARACTERS = tuple("=+-@\uff1d\uff0b\uff0d\uff20")


def combining_marks(target: Target) -> Outcome:
    """Import a record of 240 kB of combining marks, and interrupt a second import of many."""
    record = line(details={"note": COMBINING_MARKS})
    seconds = import_seconds(target, record)
    interrupted = interrupt_seconds(target, b"\n".join([record] * 50))
    happened = f"the record took {seconds:.1f} s, Ctrl-C {interrupted:.1f} s"
    is_harmless = seconds < RECORD_SECONDS_MAX and interrupted < INTERRUPT_SECONDS_MAX
    return Outcome(f"a record of {len(record)} bytes with combining marks", happened, is_harmless)


def card_data(target: Target) -> Outcome:
    """Import details with card data in many forms, and harmless details, which must be accepted."""
    outcomes = {}
    for name in ("refused", "accepted"):
        lines = [case.line(id=f"pt_corpus{number}") for number, case in enumerate(read_cases(name))]
        with temporary(b"\n".join(lines)) as path:
            done = target.service.run("import_payments", "--keep-going", path)
        outcomes[name] = len(lines), done.stderr.count("PCI DSS")
    (exposed, refused), (harmless, wrongly_refused) = outcomes.values()
    happened = f"{refused} refused; {wrongly_refused} harmless ones refused"
    is_harmless = refused == exposed and not wrongly_refused
    return Outcome(f"{exposed} forms of card data, {harmless} harmless details", happened, is_harmless)


def formulas(target: Target) -> Outcome:
    """Export descriptions that a spreadsheet could evaluate."""
    lines = [
        line(id=f"pt_formula{number}", description=text, createdAt="2030-01-01T00:00:00.000")
        for number, text in enumerate(FORMULAS)
    ]
    target.service.import_records(lines)
    answer = target.request("/admin/payments/payment/export.csv?organization=1", user="viewer")
    rows = list(csv.DictReader(io.StringIO(answer.body)))[: len(FORMULAS)]
    cells = [cell for row in rows for cell in row["description"].replace(";", "\t").replace("\n", "\t").split("\t")]
    unsafe = [cell for cell in cells if cell.lstrip().startswith(FORMULA_CHARACTERS)]
    return Outcome(f"{len(FORMULAS)} descriptions with formulas", f"{len(unsafe)} cells begin with one", not unsafe)


def import_seconds(target: Target, content: bytes) -> float:
    with temporary(content) as path:
        started_at = time.monotonic()
        target.service.run("import_payments", path)
        return time.monotonic() - started_at


def interrupt_seconds(target: Target, content: bytes) -> float:
    """Start an import, press Ctrl-C after a second, and return how long it still runs."""
    with temporary(content) as path:
        process = target.service.popen("import_payments", path)
        time.sleep(1)
        started_at = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.communicate()
        return time.monotonic() - started_at


@contextmanager
def temporary(content: bytes) -> Iterator[str]:
    """Yield the path of a temporary file with this content."""
    with tempfile.NamedTemporaryFile(prefix="payments-attack-") as file:
        file.write(content)
        file.flush()
        yield file.name
