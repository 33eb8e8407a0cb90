#!/usr/bin/env python3
"""Run one of the project's commands: `manage.py help` lists them. Old versions of Python can parse this file."""

import os
import sys

if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036  an operator may use an older Python by mistake
        version = ".".join(map(str, sys.version_info[:2]))
        next_step = "Run scripts/install, then .venv/bin/python manage.py."
        sys.exit(f"Python {version} is too old: 3.11 or newer is necessary. {next_step}")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "payments_site.settings")
    try:
        from payments.management.running import run

        run(sys.argv)
    except ModuleNotFoundError as error:
        if "--traceback" in sys.argv:
            raise
        name = f"{error.name}".encode("unicode_escape").decode()  # it may control a terminal
        sys.exit(f"Python cannot find the module {name}. Run scripts/install, then .venv/bin/python manage.py.")
    except KeyboardInterrupt:  # while Django loads, or in a command without its own message
        sys.exit(130)
