"""Other WSGI servers run the service with the commands of deploy/README.md."""

import re
import shlex
from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from payments.api.streams import BYTES_MAX
from payments.demo import SHOPS
from payments.models import KeyScope
from tests.support.lines import line
from tests.support.migrated import fresh_database
from tests.support.processes import ROOT
from tests.support.scrape import LIST, requests, total
from tests.support.service import Service, Walker
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.once, pytest.mark.processes, pytest.mark.extended]

COUNT = 300
IMPORTS = "/v2/payments/imports"
WORKERS = 2  # of each command
COMMANDS = re.findall(r"^- .+: `(WEB_THREADS=[^`]+)`", (ROOT / "deploy/README.md").read_text(), re.MULTILINE)


def name_of(command: str) -> str:
    return Path(command.split()[1]).name


def threads_of(command: str) -> int:
    return int(command.split(maxsplit=1)[0].partition("=")[2])


@pytest.fixture(params=COMMANDS, ids=name_of)
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    settings = {"METRICS": "true", "RUNTIME_DIRECTORY": str(tmp_path / "run")}
    with fresh_database(tmp_path) as url:
        service = Service(url, settings=settings, log=tmp_path / "log")
        service.create_demo_payments(COUNT)
        command = request.param.replace("8000", str(service.port))
        with service.serving("env", *shlex.split(command)):  # and stops it by SIGTERM, with status 0
            wait_until(lambda: total(service, "payments_workers") == WORKERS)
            yield service


def test_guide_names_three_servers() -> None:
    assert [name_of(command) for command in COMMANDS] == ["gunicorn", "uvicorn", "uwsgi"]


def test_other_server_imports(service: Service) -> None:
    key = service.create_api_key(organization=SHOPS[0].id, scope=KeyScope.IMPORT)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/x-ndjson"}
    record = line(id="pt_new", organizationId=str(SHOPS[0].id))
    bodies = record.rjust(BYTES_MAX, b"\n"), iter([record]), b"nonsense"
    statuses = []
    for body in bodies:
        with closing(HTTPConnection("127.0.0.1", service.port)) as connection:
            with suppress(BrokenPipeError):  # uWSGI responds with 411 before it has read the chunks
                connection.request("POST", IMPORTS, body, headers)  # an iterator is sent in chunks
            statuses.append(connection.getresponse().status)

    assert statuses[0] == 200
    assert statuses[1] in {200, 411}
    assert statuses[2] == 400
    assert service.exported(id="pt_new").count("\n") == 1


def test_other_server_serves_api_pages_and_metrics(service: Service, request: pytest.FixtureRequest) -> None:
    key = service.create_api_key(organization=SHOPS[0].id, mode="live")
    with Walker(service.base_url, key) as walker:
        pages = list(walker.walk("next", f"{LIST}?limit=50"))
        first, _ = walker.send(LIST)
        unchanged, body = walker.send(LIST, If_None_Match=first.headers["ETag"])
    with Walker(service.base_url, "none") as stranger:
        refused, _ = stranger.send(f"{LIST}?customerId=ct_secret")
        _, login = stranger.send("/admin/login/")
        styles = re.findall(r'href="(/static/[^"]+\.css)"', login.decode())
        statuses = {path: stranger.send(path)[0].status for path in ("/readyz", "/admin/login/", "/docs/", *styles)}

    ids = [payment["id"] for page in pages for payment in page["_embedded"]["payments"]]
    assert len(ids) == len(set(ids)) == service.exported(organization=SHOPS[0].id, mode="live").count("\n")
    assert len(pages) > 1
    assert {urlsplit(page["_links"]["self"]["href"]).port for page in pages} == {service.port}
    assert (unchanged.status, body) == (304, b"")
    assert service.log
    assert "ct_secret" not in service.log.read_text()
    assert (refused.status, refused.headers["WWW-Authenticate"].split()[0]) == (401, "Bearer")
    assert len(styles) > 0
    assert set(statuses.values()) == {200}, statuses
    assert requests(service, route=LIST) == len(pages) + 3
    assert total(service, "payments_threads") == WORKERS * int(
        request.node.callspec.params["service"].partition("=")[2].split()[0]
    )
