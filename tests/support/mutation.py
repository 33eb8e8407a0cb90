"""Mutation tests: changes to a product module that its tests do not catch. `scripts/mutate` runs them.

cosmic-ray makes one small change to a module, a mutant, and runs the module's tests. A mutant that passes them has
survived: the tests have a gap, the code does nothing, or the change makes no difference. The mutants are made in a copy
of the working tree.
"""

import argparse
import json
import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final

import django
from tqdm import tqdm

from tests.support.migrated import migrated
from tests.support.postgresql import postgresql

ROOT: Final = Path(__file__).parents[2]
COSMIC_RAY: Final = "cosmic-ray==8.7.0"

# The tests of each module of payments/. They start no processes, which would take too long.
CORPUS: Final = "api/test_inputs.py::test_corpus_gets_the_responses_of_the_contract"
TESTS: Final[Mapping[str, tuple[str, ...]]] = {
    "ordering": ("api/test_list.py", "api/test_filters.py", "test_ordering.py"),
    "page": ("database/test_statements.py", "api/test_list.py", "api/test_filters.py", "test_ordering.py"),
    "api/pagination": ("api/test_errors.py", "api/test_list.py", "api/test_openapi.py", "api/test_filters.py"),
    "api/parameters": (
        "api/test_parameters.py",
        "api/test_errors.py",
        f"{CORPUS}[limit]",
        f"{CORPUS}[parameters]",
        f"{CORPUS}[filters]",
        "api/test_openapi.py",
    ),
    "filters": ("api/test_openapi.py", f"{CORPUS}[filters]", "api/test_filters.py"),
    "filter_types": ("api/test_openapi.py", f"{CORPUS}[filters]", "api/test_filters.py"),
    "rows": ("api/test_record.py", "api/test_list.py", "ingest/test_fast_path.py"),
    "changes": ("api/test_feed.py",),
    "tokens": ("test_tokens.py",),
    "api_keys": ("test_api_keys.py", "access/test_authentication.py"),
    "ingest/batches": ("ingest/test_batches.py", "ingest/test_imports.py"),
    "ingest/decoder_messages": ("ingest/test_decoder_messages.py", "ingest/test_validation.py"),
    "ingest/stored_rows": ("ingest/test_fast_path.py", "ingest/test_imports.py"),
    "ingest/fast_path": ("ingest/test_card_data.py", "ingest/test_validation.py", "ingest/test_fast_path.py"),
    "ingest/validation": ("ingest/test_validation.py", "ingest/test_card_data.py", "ingest/test_imports.py"),
    "ingest/reading": ("ingest/test_reading.py", "ingest/test_imports.py"),
    "ingest/card_data": ("ingest/test_card_data.py", "ingest/test_validation.py"),
    "ingest/card_numbers": ("ingest/test_card_data.py",),
    "ingest/folding": ("ingest/test_card_data.py",),
    "access/authentication": ("access/test_authentication.py", "access/test_throttling.py", f"{CORPUS}[authorization]"),
    "access/keys": ("access/test_authentication.py",),
    "ingest/changes": ("ingest/test_recorded_changes.py", "test_totals.py"),
    "totals": ("test_totals.py", "ingest/test_recorded_changes.py"),
}

# What cosmic-ray does not change. `|` and `*` stand mostly in annotations and signatures, and are not arithmetic. One
# opposite or boundary of an operator is enough. A unary operator is only deleted.
EXCLUDED: Final = (
    "core/ReplaceBinaryOperator_(?!(Add_Sub|Sub_Add|Mod_FloorDiv)$)",
    "core/ReplaceComparisonOperator_(?!(Eq_NotEq|NotEq_Eq|Lt_LtE|LtE_Lt|Gt_GtE|GtE_Gt|Is_IsNot|IsNot_Is)$)",
    "core/ReplaceUnaryOperator_(?!Delete_)",
)

PYTEST: Final = "-x -q -p no:randomly -p no:cacheprovider -p no:xdist -p no:cov"

# A JSON value is a value of TOML, too.
CONFIGURATION: Final = """
[cosmic-ray]
module-path = {module}
test-command = {command}
timeout = {timeout}
excluded-modules = []
distributor.name = "local"
filters.operators-filter.exclude-operators = {excluded}
"""

OUTCOMES: Final = ("killed", "survived", "timeout")

# The number of mutants without the excluded ones, and the number of tested mutants.
PROGRESS: Final = """
SELECT count(*), count(worker_outcome)
FROM work_items LEFT JOIN work_results USING (job_id)
WHERE worker_outcome IS NOT 'SKIPPED'
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/mutate", description="Test the tests with mutants of the code.")
    parser.add_argument("--postgresql", action="store_true", help="run the tests on PostgreSQL instead of SQLite")
    parser.add_argument("modules", nargs="*", metavar="module", help=f"one of {', '.join(TESTS)} (default: all)")
    options = parser.parse_args()
    if unknown := set(options.modules).difference(TESTS):
        parser.error(f"unknown module: {', '.join(sorted(unknown))}")
    tools = install()
    with ExitStack() as stack:
        if options.postgresql:
            os.environ["DATABASE_URL"] = stack.enter_context(postgresql())
        django.setup()
        stack.enter_context(migrated())  # once for all mutants
        for module in options.modules or TESTS:
            report(module, results(module, tools=tools))


def install() -> Path:
    """Return the directory of cosmic-ray's programs. They have a virtual environment of their own."""
    directory = ROOT / ".mutation" / COSMIC_RAY
    if not (directory / "bin" / "cosmic-ray").exists():
        venv.create(directory, clear=True, with_pip=True)
        subprocess.run([directory / "bin" / "pip", "install", "--quiet", COSMIC_RAY], check=True)
    return directory / "bin"


def results(module: str, *, tools: Path) -> list[dict[str, Any]]:
    """Test the mutants of a module. Return the results, but not of mutants that were excluded or cannot be made."""
    tests = [sys.executable, "-m", "pytest", *shlex.split(PYTEST), *(f"tests/{test}" for test in TESTS[module])]
    cosmic_ray, leave_out = str(tools / "cosmic-ray"), str(tools / "cr-filter-operators")
    with working_copy() as copy:
        begin = time.monotonic()
        if subprocess.run(tests, cwd=copy, check=False, stdout=sys.stderr).returncode:
            sys.exit(f"The tests of {module} fail without a mutant.")
        (copy / "mutation.toml").write_text(
            CONFIGURATION.format(
                module=json.dumps(f"payments/{module}.py"),
                command=json.dumps(shlex.join(tests)),
                timeout=json.dumps(20 + 2 * (time.monotonic() - begin)),
                excluded=json.dumps(EXCLUDED),
            )
        )
        subprocess.run([cosmic_ray, "init", "mutation.toml", "mutants.sqlite"], cwd=copy, check=True)
        subprocess.run([leave_out, "mutants.sqlite", "mutation.toml"], cwd=copy, check=True)
        with subprocess.Popen([cosmic_ray, "exec", "mutation.toml", "mutants.sqlite"], cwd=copy) as running:
            show_progress(running, copy / "mutants.sqlite", module)
        dump = subprocess.run([cosmic_ray, "dump", "mutants.sqlite"], cwd=copy, check=True, stdout=subprocess.PIPE)
    return [result for _, result in map(json.loads, dump.stdout.splitlines()) if result["worker_outcome"] == "normal"]


@contextmanager
def working_copy() -> Iterator[Path]:
    """Yield a copy of the working tree without hidden files and `var`."""
    with tempfile.TemporaryDirectory(prefix="payments-mutation-") as directory:
        copy = Path(directory) / "copy"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "var"))
        yield copy


def show_progress(running: subprocess.Popen[bytes], session: Path, module: str) -> None:
    with closing(sqlite3.connect(session)) as database, tqdm(desc=module, unit=" mutants", disable=None) as bar:
        while running.poll() is None:
            bar.total, bar.n = database.execute(PROGRESS).fetchone()
            bar.refresh()
            time.sleep(1)
    if running.returncode:
        raise subprocess.CalledProcessError(running.returncode, running.args)


def report(module: str, tested: list[dict[str, Any]]) -> None:
    """Write the survivors of a module and its score: the share of mutants that did not survive."""
    outcomes = Counter("timeout" if mutant["output"] == "timeout" else mutant["test_outcome"] for mutant in tested)
    survivors = [mutant["diff"] for mutant in tested if mutant["test_outcome"] == "survived"]
    counts = ", ".join(f"{outcomes[name]} {name}" for name in OUTCOMES)
    score = 1 - len(survivors) / max(1, len(tested))
    sys.stdout.write("\n".join([*survivors, f"{module}: {len(tested)} mutants, {counts}, score {score:.0%}\n"]))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
