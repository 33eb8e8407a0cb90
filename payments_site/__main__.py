"""The program `payments` of an installed wheel, which is `manage.py` in a checkout."""

import os
import sys
from pathlib import Path


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "payments_site.settings")
    if sys.argv[1:2] == ["start"]:  # the settings are read before the command runs
        os.environ["DEBUG"] = "false"
    try:
        from payments.management.running import run  # noqa: PLC0415  needs Django

        run(sys.argv)
    except ModuleNotFoundError as error:
        if "--traceback" in sys.argv:
            raise
        name = f"{error.name}".encode("unicode_escape").decode()  # it may control a terminal
        is_checkout = Path(__file__).resolve().parents[1].joinpath("manage.py").exists()
        steps = "Run scripts/install, then .venv/bin/python manage.py." if is_checkout else "Install it again."
        sys.exit(f"Python cannot find the module {name}. {steps}")
    except KeyboardInterrupt:  # while Django loads, or in a command without its own message
        sys.exit(130)


if __name__ == "__main__":
    main()
