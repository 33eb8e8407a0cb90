"""Run a command of manage.py. A failure that an operator can correct is reported in one line."""

import os
import sys
from argparse import Namespace
from contextlib import suppress

from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, CommandParser, execute_from_command_line, handle_default_options
from django.db import Error

from payments.conf import conf
from payments.management.failures import explain
from payments.runtime.terminal import printable

# An environment variable of the processes that a command starts, such as those of `runserver`.
HAS_WARNED = "MANAGE_PY_HAS_WARNED"


def run(arguments: list[str]) -> None:
    """Run the command that the arguments of the process name. With --traceback, an error keeps its traceback."""
    options = parse_common_options(arguments)
    handle_default_options(options)
    if options.verbosity != "0" and HAS_WARNED not in os.environ:
        print_warnings()
    os.environ[HAS_WARNED] = "true"
    try:
        execute_from_command_line(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has ended, as in `manage.py help | head`
        discard_output()
        sys.exit(1)
    except (ImproperlyConfigured, Error, OSError) as error:
        message = None if options.traceback else explain(error)
        if message is None:
            raise
        if isinstance(error, OSError) and error.filename is None:
            discard_output()
        # Django prints the errors of commands with this prefix.
        prefix = "" if isinstance(error, ImproperlyConfigured) else f"{CommandError.__name__}: "
        sys.exit(prefix + printable(message))
    finally:
        del os.environ[HAS_WARNED]


def parse_common_options(arguments: list[str]) -> Namespace:
    """Return the options that all commands have and that are needed outside of the command."""
    parser = CommandParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--settings")
    parser.add_argument("--pythonpath")
    parser.add_argument("--traceback", action="store_true")
    parser.add_argument("-v", "--verbosity", default="1")
    try:
        return parser.parse_known_args(arguments[2:])[0]
    except CommandError:  # the parser of the command reports it
        return parser.parse_args([])


def discard_output() -> None:
    """Discard the rest of the output, which Python would try to write again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_warnings() -> None:
    """Print the warnings of the settings. Invalid settings are an error of the command."""
    with suppress(ImproperlyConfigured, ImportError):
        for warning in conf.SETTINGS_WARNINGS:
            sys.stderr.write(f"Warning: {printable(warning)}\n")
