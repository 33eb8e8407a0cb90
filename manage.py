#!/usr/bin/env python3
"""Run one of the project's commands: `manage.py help` lists them. Old versions of Python can parse this file."""

import sys

if __name__ == "__main__":
    if sys.platform == "win32":
        sys.exit("This service needs Linux or macOS. On Windows, run it in WSL.")
    if sys.version_info < (3, 11):  # noqa: UP036  an operator may use an older Python by mistake
        version = ".".join(map(str, sys.version_info[:2]))
        next_step = "Run scripts/install, then .venv/bin/python manage.py."
        sys.exit(f"Python {version} is too old: 3.11 or newer is necessary. {next_step}")
    from payments_site.__main__ import main

    main()
