"""The service on macOS, which lacks functions of Linux. These tests run on Linux, and remove the functions."""

from pathlib import Path

import pytest

from tests.support.migrated import fresh_database
from tests.support.scrape import LIST, fetch, requests
from tests.support.service import START, Service, count_started_workers
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.once, pytest.mark.extended, pytest.mark.processes]

MISSING = {
    "fcntl": "F_ADD_SEALS F_GETPIPE_SZ F_GET_SEALS F_NOTIFY F_SETPIPE_SZ F_SETSIG",
    "os": "O_DIRECT O_NOATIME O_PATH O_TMPFILE RTLD_DEEPBIND copy_file_range eventfd fdatasync getrandom getresgid "
    "getresuid getxattr listxattr memfd_create pidfd_open pipe2 posix_fadvise posix_fallocate removexattr "
    "sched_getaffinity sched_getparam sched_getscheduler sched_setaffinity sched_setparam sched_setscheduler "
    "setresgid setresuid setxattr splice waitid",
    "resource": "RLIMIT_NICE RLIMIT_RTPRIO RLIMIT_SIGPENDING RUSAGE_THREAD prlimit",
    "select": "EPOLLIN EPOLLOUT POLLRDHUP epoll",
    "signal": "SIGPOLL SIGPWR SIGRTMAX SIGRTMIN pidfd_send_signal sigtimedwait sigwaitinfo",
    "socket": "AF_NETLINK AF_PACKET AF_VSOCK MSG_CMSG_CLOEXEC MSG_NOSIGNAL SOCK_CLOEXEC SOCK_NONBLOCK SO_BINDTODEVICE "
    "SO_DOMAIN SO_MARK SO_PEERCRED SO_PROTOCOL TCP_DEFER_ACCEPT TCP_KEEPIDLE TCP_QUICKACK TCP_USER_TIMEOUT",
    "time": "CLOCK_BOOTTIME CLOCK_TAI pthread_getcpuclockid",
}

# Python runs it at each start.
SITECUSTOMIZE = f"""
import importlib

for name, missing in {MISSING}.items():
    module = importlib.import_module(name)
    for attribute in missing.split():
        vars(module).pop(attribute, None)
"""


@pytest.fixture
def service(tmp_path: Path) -> Service:
    (tmp_path / "sitecustomize.py").write_text(SITECUSTOMIZE)
    runtime_directory = tmp_path / "run"
    settings = {"PYTHONPATH": str(tmp_path), "METRICS": "true", "RUNTIME_DIRECTORY": str(runtime_directory)}
    return Service(f"sqlite:///{tmp_path}/payments.sqlite3", settings=settings, workers=2, log=tmp_path / "log")


def test_functions_are_missing_in_the_processes(service: Service) -> None:
    done = service.run("shell", "--no-imports", "-c", "import os; os.posix_fallocate")

    assert done.returncode == 1
    assert "has no attribute 'posix_fallocate'" in done.stderr


def test_commands_store_and_read_payments(service: Service, tmp_path: Path) -> None:
    service.manage("migrate")
    service.manage("create_demo_payments", "--count", "10")
    service.manage("back_up_database", str(tmp_path / "copy.sqlite3"))

    exported = service.manage("export_payments")

    assert len(exported.splitlines()) == 10
    assert (tmp_path / "copy.sqlite3").stat().st_size > 0


def test_server_serves_the_list_and_counts_its_requests(service: Service, tmp_path: Path) -> None:
    with fresh_database(tmp_path) as service.database_url, service.serving(START):
        service.create_demo_payments(10)
        key = service.create_api_key(organization=1001, mode="live")
        wait_until(lambda: count_started_workers(service) == service.workers)

        statuses = [fetch(service, f"{LIST}?limit=1", key=key)[0] for _ in range(5)]

        assert statuses == [200] * 5
        assert requests(service, route=LIST, method="GET", status="200") == 5
