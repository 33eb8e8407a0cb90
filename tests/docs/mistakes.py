"""Mistakes of operators, made on a machine of their own, and the line that the command prints."""

import os
import resource
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import CompletedProcess
from typing import Final

from django.test import override_settings

from payments.ingest.formats.sources import CHUNK_BYTES
from payments.runtime.process import process
from tests.support.commands import manage, run_command
from tests.support.lines import line
from tests.support.ports import free_port
from tests.support.processes import ROOT
from tests.support.service import Service, inherited_environment

DISK_BYTES: Final = 65536
OLD_PYTHON: Final = "import runpy, sys; sys.version_info = (3, 10, 0); runpy.run_path('manage.py', run_name='__main__')"


# The start of a command. Root keeps its files, but loses the right to ignore permissions.
ROOT_MAY_NOT: Final = "-dac_override,-dac_read_search"
UNPRIVILEGED: Final = (
    ("setpriv", "--bounding-set", ROOT_MAY_NOT, "--inh-caps", ROOT_MAY_NOT) if os.geteuid() == 0 else ()
)


class Machine:
    """A machine with a SQLite file. Processes on it may not ignore the permissions of files."""

    def __init__(self, directory: Path, *, migrated_file: Path) -> None:
        self.directory = directory
        self.migrated_file = migrated_file
        self.project = ROOT
        self.file = directory / "payments.sqlite3"
        self.runtime_directory = directory / "private/run"
        self.runtime_directory.parent.mkdir()
        self.port = free_port()
        self.service = Service(
            f"sqlite:///{self.file}", port=self.port, settings={"RUNTIME_DIRECTORY": str(self.runtime_directory)}
        )

    def migrate(self) -> None:
        shutil.copy(self.migrated_file, self.file)

    def manage(self, *arguments: str, url: str | None = None) -> str:
        """Return the messages of a command of manage.py that must fail, or warn."""
        return self.messages(manage(*arguments, url=url or self.service.database_url))

    def prepare(self, *, host: str = "127.0.0.1") -> str:
        """Return the message of the command with which scripts/start begins."""
        process.rate_limits.close()  # of an earlier test
        with override_settings(PAYMENTS_RUNTIME_DIRECTORY=self.runtime_directory, HOST=host, PORT=self.port):
            return self.manage("start", "--check")

    def start(self) -> str:
        return self.run("scripts/start", environment=self.service.environment)

    def run_manage(self, *arguments: str, **settings: str) -> str:
        """Return the messages of manage.py in a process of its own."""
        return self.run(sys.executable, "manage.py", *arguments, environment=self.service.environment | settings)

    def run(self, *command: str, environment: Mapping[str, str]) -> str:
        return self.messages(run_command([*UNPRIVILEGED, *command], cwd=self.project, env=environment))

    def messages(self, done: CompletedProcess[str]) -> str:
        assert done.returncode == (0 if done.stderr.startswith("Warning: ") else 1), done.stderr
        return self.as_documented(done.stderr)

    def as_documented(self, text: str) -> str:
        """Return the text with the paths and the port of the expected messages."""
        replacements = {
            str(self.runtime_directory): "/run/payments",
            str(self.project): "/opt/payments",
            str(self.directory): "/srv",
            f"port {self.port}": "port 8000",
        }
        for actual, documented in replacements.items():
            text = text.replace(actual, documented)
        return text


def set_invalid_value(machine: Machine) -> str:
    return machine.run_manage("check", WEB_THREADS="0")


def write_password_unencoded(machine: Machine) -> str:
    return machine.run_manage("check", DATABASE_URL="postgresql://payments:pass@word@db.example/payments")


def misspell_setting(machine: Machine) -> str:
    return machine.run_manage("check", DATABASE_URI="postgresql://db.example/payments")


def stop_server(machine: Machine) -> str:
    message = machine.manage("migrate", url=f"postgresql://payments@127.0.0.1:{machine.port}/payments")
    return message.replace("port 8000", "port 5432")


def make_file_unreadable(machine: Machine) -> str:
    machine.migrate()
    machine.file.chmod(0)
    return machine.run_manage("list_api_keys")


def make_file_read_only(machine: Machine) -> str:
    machine.migrate()
    machine.file.chmod(0o400)
    return machine.run_manage("create_organization", "7", "--name", "Books")


def damage_file(machine: Machine) -> str:
    machine.file.write_bytes(b"nonsense" * 1000)
    return machine.manage("list_api_keys")


def fill_disk(machine: Machine) -> str:
    machine.migrate()
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (DISK_BYTES, unlimited[1]))
    try:
        return machine.manage("create_demo_payments")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)


def fill_disk_of_export(machine: Machine) -> str:
    machine.migrate()
    machine.service.create_demo_payments(1)
    with Path("/dev/full").open("w") as full:
        return machine.messages(manage("export_payments", url=machine.service.database_url, stdout=full))


def forget_to_migrate(machine: Machine) -> str:
    return machine.manage("list_api_keys")


def start_without_migrations(machine: Machine) -> str:
    return machine.prepare()


def use_port_twice(machine: Machine) -> str:
    with socket.create_server(("127.0.0.1", machine.port)):
        return machine.prepare()


def listen_on_foreign_address(machine: Machine) -> str:
    return machine.prepare(host="192.0.2.1")


def listen_on_name(machine: Machine) -> str:
    return machine.prepare(host="localhost")


def open_runtime_directory(machine: Machine) -> str:
    machine.runtime_directory.mkdir()
    machine.runtime_directory.chmod(0o755)
    return machine.prepare()


def protect_parent_of_runtime_directory(machine: Machine) -> str:
    machine.runtime_directory.parent.chmod(0o500)
    return machine.start()


def protect_runtime_directory(machine: Machine) -> str:
    machine.runtime_directory.mkdir(mode=0o500)
    return machine.start()


def damage_rate_limits(machine: Machine) -> str:
    machine.runtime_directory.mkdir(mode=0o700)
    (machine.runtime_directory / "limits.sqlite3").write_bytes(b"nonsense" * 1000)
    return machine.prepare()


def protect_project(machine: Machine) -> str:
    """Run a copy of the project that may not be written, without settings."""
    machine.project = machine.directory / "project"
    for name in ("payments", "payments_site"):
        shutil.copytree(ROOT / name, machine.project / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "manage.py", machine.project)
    machine.project.chmod(0o500)
    return machine.run(sys.executable, "manage.py", "check", environment=inherited_environment())


def use_missing_organization(machine: Machine) -> str:
    machine.migrate()
    return machine.manage("create_api_key", "--organization", "7", "--mode", "live", "--name", "Shop")


def import_file(machine: Machine, name: str, content: bytes) -> str:
    machine.migrate()
    file = machine.directory / name
    file.write_bytes(content)
    return machine.manage("import_payments", str(file))


def import_for_missing_organization(machine: Machine) -> str:
    return import_file(machine, "payments.jsonl", line())


def import_unknown_field(machine: Machine) -> str:
    return import_file(machine, "payments.jsonl", line(profileId="pfl_1"))


def import_xml(machine: Machine) -> str:
    return import_file(machine, "payments.xml", b'<?xml version="1.0"?>\n<Document/>\n')


def interrupt_import(machine: Machine) -> str:
    """Press Ctrl-C when the import has read from a pipe."""
    machine.migrate()
    pipe = machine.directory / "pipe"
    os.mkfifo(pipe)
    importing = machine.service.popen("import_payments", str(pipe))
    with pipe.open("wb") as writer:  # opens as soon as the import opens the pipe
        writer.write(b" " * (CHUNK_BYTES + 1))
        importing.send_signal(signal.SIGINT)
    # The pipe is closed now. A signal just before a read ends the read of an open pipe only with the next byte.
    _, messages = importing.communicate()
    assert importing.returncode == 130, messages
    return machine.as_documented(messages.decode())


def remove_packages(machine: Machine) -> str:
    return machine.run(sys.executable, "-S", "manage.py", "check", environment=machine.service.environment)


def use_old_python(machine: Machine) -> str:
    return machine.run(sys.executable, "-c", OLD_PYTHON, environment=machine.service.environment)


# By their names in tests/documents/operators_messages.txt.
MISTAKES: Final[dict[str, Callable[[Machine], str]]] = {
    "a setting is invalid": set_invalid_value,
    "the password in DATABASE_URL contains @ or /": write_password_unencoded,
    "the name of a setting is misspelt": misspell_setting,
    "the PostgreSQL server is down": stop_server,
    "the SQLite file cannot be read, or its directory is missing": make_file_unreadable,
    "the SQLite file cannot be written": make_file_read_only,
    "the SQLite file is damaged": damage_file,
    "the disk of the SQLite file is full": fill_disk,
    "the disk of an export is full": fill_disk_of_export,
    "a command meets a table that a migration creates": forget_to_migrate,
    "the service starts without all migrations": start_without_migrations,
    "the port is in use": use_port_twice,
    "HOST is no address of this machine": listen_on_foreign_address,
    "HOST is a name": listen_on_name,
    "RUNTIME_DIRECTORY is accessible to others": open_runtime_directory,
    "RUNTIME_DIRECTORY cannot be created": protect_parent_of_runtime_directory,
    "RUNTIME_DIRECTORY cannot be written": protect_runtime_directory,
    "a file in RUNTIME_DIRECTORY is damaged": damage_rate_limits,
    "without settings, the project folder cannot be written": protect_project,
    "the organization of an API key does not exist": use_missing_organization,
    "the organization of an imported payment does not exist": import_for_missing_organization,
    "an imported record has fields that a payment does not have": import_unknown_field,
    "an imported file is XML": import_xml,
    "an import is interrupted, which is status 130": interrupt_import,
    "packages are missing": remove_packages,
    "Python is too old": use_old_python,
}
