"""The commands' --help: what each does, what its options mean, and examples that work."""

import io
import shlex
from collections.abc import Iterator
from contextlib import redirect_stdout

import pytest
from django.core.management import load_command_class

from payments.management.command import ExplainedCommand
from tests.support.processes import ROOT

COMMANDS = sorted(file.stem for file in (ROOT / "payments/management/commands").glob("[!_]*.py"))
COLUMNS = 80
HIDDEN = "==SUPPRESS=="


def command(name: str) -> ExplainedCommand:
    found = load_command_class("payments", name)
    assert isinstance(found, ExplainedCommand)
    return found


def examples() -> Iterator[tuple[str, str]]:
    for name in COMMANDS:
        for example in command(name).examples:
            yield name, example


def arguments(example: str) -> list[str]:
    """Return the words that a shell hands to manage.py: all up to where it reads, writes or pipes."""
    words = shlex.shlex(example, posix=True, punctuation_chars="<>|")
    words.whitespace_split = True
    found = list(words)
    ends = [place for place, word in enumerate(found) if word in {"<", ">", "|"}]
    return found[: min(ends, default=len(found))]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_what_it_does_first_and_shows_an_example_last(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    output = io.StringIO()

    with redirect_stdout(output):
        command(name).print_help("manage.py", name)

    usage, *paragraphs, last = output.getvalue().strip().split("\n\n")
    assert usage.startswith(f"usage: manage.py {name} ")
    assert paragraphs[0][0].isupper()
    assert last.startswith(f"examples:\n  manage.py {name}")
    assert max(map(len, "\n".join(paragraphs).splitlines())) <= COLUMNS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_argument_is_explained(name: str) -> None:
    parser = command(name).create_parser("manage.py", name)

    assert [action.dest for action in parser._actions if not action.help] == []  # noqa: SLF001


@pytest.mark.parametrize("name", COMMANDS)
def test_what_django_brings_is_hidden_but_works(name: str) -> None:
    parser = command(name).create_parser("manage.py", name)

    hidden = {action.option_strings[-1] for action in parser._actions if action.help == HIDDEN}  # noqa: SLF001
    assert hidden == {"--version", "--settings", "--pythonpath", "--traceback", "--no-color", "--force-color"}


@pytest.mark.parametrize(("name", "example"), list(examples()))
def test_every_example_can_be_typed(name: str, example: str) -> None:
    program, subcommand, *rest = arguments(example)

    assert (program, subcommand) == ("manage.py", name)
    command(name).create_parser(program, subcommand).parse_args(rest)


def test_an_example_that_could_not_be_typed_is_found_out() -> None:
    _, name, *rest = arguments("manage.py create_api_key --organization 7 --mode prod --name x >shop.key")

    with pytest.raises(Exception, match="invalid choice: 'prod'"):
        command(name).create_parser("manage.py", name).parse_args(rest)
