"""The `--help` of the commands: the description, the options and the examples."""

import io
import shlex
from collections.abc import Iterator
from contextlib import redirect_stdout
from itertools import takewhile

import pytest
from django.core.management import load_command_class

from payments.management.command import PaymentsCommand
from tests.support.processes import ROOT

pytestmark = pytest.mark.once

EXTENDED = {"runserver"}  # a command of Django
APPLICATIONS = {
    file.stem: file.relative_to(ROOT).parts[0]
    for file in ROOT.glob("payments*/management/commands/[!_]*.py")
    if file.stem not in EXTENDED
}
COMMANDS = sorted(APPLICATIONS)
COLUMNS = 80
HIDDEN = "==SUPPRESS=="


def load_command(name: str) -> PaymentsCommand:
    command = load_command_class(APPLICATIONS[name], name)
    assert isinstance(command, PaymentsCommand)
    return command


def examples() -> Iterator[tuple[str, str]]:
    for name in COMMANDS:
        for example in load_command(name).examples:
            yield name, example


def arguments(example: str) -> list[str]:
    """Return the words of a shell command before the first redirection or pipe."""
    lexer = shlex.shlex(example, posix=True, punctuation_chars="<>|")
    lexer.whitespace_split = True
    return list(takewhile(lambda word: word not in {"<", ">", "|"}, lexer))


@pytest.mark.parametrize("name", COMMANDS)
def test_help_starts_with_a_description_and_ends_with_examples(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    output = io.StringIO()

    with redirect_stdout(output):
        load_command(name).print_help("manage.py", name)

    usage, *paragraphs, last = output.getvalue().strip().split("\n\n")
    assert usage.startswith(f"usage: manage.py {name} ")
    assert paragraphs[0][0].isupper()
    assert last.startswith(f"examples:\n  manage.py {name}")
    assert max(map(len, "\n".join(paragraphs).splitlines())) <= COLUMNS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_argument_has_a_help_text(name: str) -> None:
    parser = load_command(name).create_parser("manage.py", name)

    assert [action.dest for action in parser._actions if not action.help] == []  # noqa: SLF001


@pytest.mark.parametrize("name", COMMANDS)
def test_options_of_django_are_hidden(name: str) -> None:
    parser = load_command(name).create_parser("manage.py", name)

    hidden = {action.option_strings[-1] for action in parser._actions if action.help == HIDDEN}  # noqa: SLF001
    assert hidden == {"--version", "--settings", "--pythonpath", "--traceback", "--no-color", "--force-color"}


@pytest.mark.parametrize(("name", "example"), list(examples()))
def test_examples_are_valid(name: str, example: str) -> None:
    program, subcommand, *rest = arguments(example)

    assert (program, subcommand) == ("manage.py", name)
    load_command(name).create_parser(program, subcommand).parse_args(rest)


def test_invalid_example_is_detected() -> None:
    _, name, *rest = arguments("manage.py create_api_key --organization 7 --mode prod --name x >shop.key")

    with pytest.raises(Exception, match="invalid choice: 'prod'"):
        load_command(name).create_parser("manage.py", name).parse_args(rest)
