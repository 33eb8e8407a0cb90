"""What our commands have in common: help that ends with examples, and words for people that can be left out."""

from argparse import RawDescriptionHelpFormatter
from inspect import cleandoc
from typing import Any

from django.core.management.base import BaseCommand, CommandParser, DjangoHelpFormatter

# The exit status of what Ctrl-C has ended, as a shell has it.
INTERRUPTED = 130


class HelpFormatter(DjangoHelpFormatter, RawDescriptionHelpFormatter):
    """Leaves the lines of a description, and of examples, as they were written."""


class ExplainedCommand(BaseCommand):
    """A command whose `help` has paragraphs, and whose `examples` are lines for a shell."""

    examples: tuple[str, ...]

    # Django's own, which work all the same: help is about what the command does.
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
        return parser

    def execute(self, *args: Any, **options: Any) -> str | None:
        self.is_silent = options["verbosity"] == 0
        return super().execute(*args, **options)

    def tell(self, done: str, *further: str) -> None:
        """Say on stderr what was done, and what may come next, unless --verbosity is 0."""
        if self.is_silent:
            return
        self.stderr.write(done, self.style.SUCCESS if self.stderr.isatty() else None)
        for line in further:
            self.stderr.write(line, str)  # or Django would write it as an error
