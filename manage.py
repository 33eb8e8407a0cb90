#!/usr/bin/env python3
"""Run one of the project's commands: `manage.py help` lists them."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "payments_site.settings")
    try:
        from django.core.management import execute_from_command_line

        execute_from_command_line(sys.argv)
    except KeyboardInterrupt:  # while Django is loaded, or in a command that has nothing to say of it
        sys.exit(130)
