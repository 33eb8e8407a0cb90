#!/usr/bin/env python3
"""Run one of the project's commands: `manage.py help` lists them."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "payments_site.settings")
    try:
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import execute_from_command_line

        try:
            execute_from_command_line(sys.argv)
        except ImproperlyConfigured as error:  # the message says all; a traceback would bury it
            sys.exit(str(error))
    except KeyboardInterrupt:  # while Django loads, or in a command without its own message
        sys.exit(130)
