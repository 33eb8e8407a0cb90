"""Attacks on a service with its own database: `benchmarks/attack`. A line for each says what happened.

A victim is another client, with two connections. It must not notice the attack.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "payments_site.settings")
django.setup()

from benchmarks import attack_load, attack_requests  # noqa: E402
from benchmarks.attack_target import running_target  # noqa: E402

ATTACKS = {**attack_load.ATTACKS, **attack_requests.ATTACKS}


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks/attack", description="Attack a service that this command starts.")
    parser.add_argument("database", nargs="?", choices=("postgresql", "sqlite"), default="postgresql")
    parser.add_argument("--only", action="append", choices=ATTACKS, help="run only this attack; may be repeated")
    parser.add_argument("--payments", type=int, default=60_000, help="number of payments of the attacker")
    parser.add_argument("--seconds", type=float, default=6, help="duration of an attack")
    options = parser.parse_args()
    passed = True
    with tempfile.TemporaryDirectory(prefix="payments-attack-") as directory:
        print("Loading payments", file=sys.stderr)
        with running_target(Path(directory), options) as target:
            for name in options.only or ATTACKS:
                happened, is_harmless = ATTACKS[name](target)
                passed = passed and is_harmless
                print(f"{'pass' if is_harmless else 'FAIL'}  {name}: {happened}", flush=True)
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
