"""Runs the attacks. See SECURITY.md."""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "payments_site.settings")
django.setup()

from benchmarks.attacks import files, overload, staff, timing  # noqa: E402
from benchmarks.attacks.target import Outcome, Target, running_target  # noqa: E402

ATTACKS: Mapping[str, Callable[[Target], Outcome]] = {
    "admin look-ups": staff.look_ups,
    "admin requests": staff.random_requests,
    "form sent again": staff.form_sent_again,
    "filter timing": timing.metadata_filter,
    "combining marks": files.combining_marks,
    "card data": files.card_data,
    "formulas": files.formulas,
    "logins": overload.logins,
    "slow filters": overload.slow_filters,
    "slow readers": overload.slow_readers,
    "frozen database": overload.frozen_database,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks/attack", description="Attack a service that this command starts.")
    parser.add_argument("database", nargs="?", choices=("postgresql", "sqlite"), default="postgresql")
    parser.add_argument("--only", action="append", choices=ATTACKS, help="run only this attack; may be repeated")
    options = parser.parse_args()
    passed = True
    with tempfile.TemporaryDirectory(prefix="payments-attack-") as directory:
        print("Loading payments", file=sys.stderr)
        with running_target(Path(directory), is_sqlite=options.database == "sqlite") as target:
            for name in options.only or ATTACKS:
                outcome = ATTACKS[name](target)
                passed = passed and outcome.is_harmless
                print(
                    f"{'pass' if outcome.is_harmless else 'FAIL'}  {name}: {outcome.tried}. {outcome.happened}",
                    flush=True,
                )
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
