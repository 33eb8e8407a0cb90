"""Runs the programs that fill a service, against local servers."""

import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from unittest.mock import patch

from tests.examples.mollie_server import MollieServer
from tests.examples.service_server import ServiceServer
from tests.examples.stripe_server import StripeServer
from tests.support.processes import ROOT

EXAMPLES = ROOT / "examples"


class Done(NamedTuple):
    """The exit status and the output of a program."""

    status: int
    stdout: str
    stderr: str


Provider: TypeAlias = MollieServer | StripeServer


@dataclass
class Setting:
    """A provider's program, its server, the service and the state file."""

    provider: Provider
    service: ServiceServer
    directory: Path
    options: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    examples: Path = EXAMPLES
    state_name: str = "state.json"
    organization: str = "7"

    @property
    def name(self) -> str:
        return "mollie" if isinstance(self.provider, MollieServer) else "stripe"

    @property
    def state(self) -> Path:
        return self.directory / self.state_name

    @property
    def command(self) -> list[str | Path]:
        program = self.examples / f"fetch_{self.name}.py"
        return [sys.executable, program, "--organization", self.organization, "--state", self.state, *self.options]

    @property
    def sending(self) -> list[str | Path]:
        return [*self.command, "--send", self.service.url]

    @property
    def variables(self) -> dict[str, str]:
        names = ("MOLLIE_TOKEN", "MOLLIE_URL") if self.name == "mollie" else ("STRIPE_KEY", "STRIPE_URL")
        values = dict(zip(names, (self.provider.key, self.provider.url), strict=True))
        return {**os.environ, **values, "PAYMENTS_KEY": self.service.key, **self.environment}

    def start(self, command: list[str | Path]) -> subprocess.Popen[str]:
        return subprocess.Popen(command, env=self.variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, command: list[str | Path]) -> Done:
        """Run the program in this process, because another one takes a quarter of a second to start."""
        _, program, *arguments = map(str, command)
        stderr, handler = StringIO(), signal.getsignal(signal.SIGINT)
        with (
            (self.directory / "stdout").open("w+") as stdout,
            patch.dict(os.environ, self.variables),
            patch.object(sys, "argv", [program, *arguments]),
            redirect_stdout(stdout),
            redirect_stderr(stderr),
        ):
            status = exit_status(program, stderr)
            signal.signal(signal.SIGINT, handler)
            stdout.seek(0)
            return Done(status, stdout.read(), stderr.getvalue())

    def send(self) -> Done:
        """Run the program, which sends payments to the service."""
        return self.run(self.sending)

    def print(self) -> list[Any]:
        """Run the program, which must succeed. Return the records that it prints."""
        done = self.run(self.command)
        assert (done.status, done.stderr) == (0, "")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def expected(self) -> dict[str, Any]:
        """Return the payments as they are now at the provider."""
        convert = importlib.import_module("mollie_payments" if self.name == "mollie" else "stripe_charges").convert
        records = [
            json.loads(json.dumps(convert(self.current(id_), self.organization))) for id_ in self.provider.payments
        ]
        return {record["id"]: record for record in records}

    def current(self, id_: str) -> Any:
        """Return a payment with the other objects that the program reads."""
        if isinstance(self.provider, MollieServer):
            return self.provider.payments[id_]
        return self.provider.full(id_)


@contextmanager
def serving(provider: Provider, directory: Path, service: ServiceServer | None = None) -> Iterator[Setting]:
    service = service or ServiceServer()
    provider.prefix = service.organization
    with provider.serving(), service.serving():
        yield Setting(provider, service, directory, organization=service.organization)


def exit_status(program: str, stderr: StringIO) -> int:
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as error:
        if isinstance(error.code, str):
            stderr.write(f"{error.code}\n")
            return 1
        return error.code or 0
    return 0
