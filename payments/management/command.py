"""The base class of this project's commands."""

from argparse import RawDescriptionHelpFormatter
from inspect import cleandoc
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser, DjangoHelpFormatter, SystemCheckError
from django.db import Error

from payments.management.failures import explain
from payments.runtime.terminal import printable

# The exit status after Ctrl-C, as shells report it: 128 and the number of SIGINT.
INTERRUPTED = 130


class HelpFormatter(DjangoHelpFormatter, RawDescriptionHelpFormatter):
    """Keeps the line breaks of descriptions and examples."""


class PaymentsCommand(BaseCommand):
    """A command with a `help` of several paragraphs and with `examples`, which are shell commands.

    Its functions raise CommandError for an operator's mistake, with the next step. Messages and errors are printable:
    they may contain names and arguments from outside.
    """

    examples: tuple[str, ...]

    # Options of Django. They work, but the help describes only the command's own options.
    suppressed_base_arguments = {
        "--version",
        "--settings",
        "--pythonpath",
        "--traceback",
        "--no-color",
        "--force-color",
    }

    def create_parser(self, prog_name: str, subcommand: str, **options: Any) -> CommandParser:
        parser = super().create_parser(
            prog_name,
            subcommand,
            formatter_class=HelpFormatter,
            epilog="\n  ".join(["examples:", *self.examples]),
            **options,
        )
        parser.description = cleandoc(self.help)
        show_error = parser.error
        parser.error = lambda message: show_error(printable(message))  # type: ignore[method-assign]
        return parser

    def execute(self, *args: Any, **options: Any) -> str | None:
        self.is_silent = options["verbosity"] == 0
        try:
            return super().execute(*args, **options)
        except Error as error:
            message = explain(error)
            if message is None:
                raise
            raise CommandError(printable(message)) from error
        except ValidationError as error:
            raise CommandError(printable(" ".join(error.messages))) from error
        except UnicodeEncodeError as error:
            if error.encoding != "utf-8":  # the encoding of stdout
                raise
            raise CommandError("An argument is not UTF-8.") from error
        except SystemCheckError:  # has several lines
            raise
        except CommandError as error:
            error.args = (printable(str(error)),)
            raise

    def write_success(self, message: str, *next_steps: str) -> None:
        """Write a message and the next steps to stderr, unless --verbosity is 0."""
        if self.is_silent:
            return
        self.stderr.write(printable(message), self.style.SUCCESS if self.stderr.isatty() else None)
        for line in next_steps:
            self.stderr.write(printable(line), str)  # without a style, Django would use the style of errors
