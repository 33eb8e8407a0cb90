"""Generated clients list and import payments, with their details, and use every filter. Tools accept the document.

One client in Python and one in TypeScript are generated in the second stage, all of them in the long run.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest
from msgspec import Raw
from msgspec.structs import replace

from payments.demo import SHOPS, demo_records
from payments.listing.filters import FILTERS
from payments.models import KeyScope, Mode
from payments.record import Record, encode
from tests.support import lines
from tests.support.commands import run_command
from tests.support.factories import NOON
from tests.support.ports import free_port
from tests.support.processes import ROOT, wait_until_listening
from tests.support.scale import report, times
from tests.support.service import Service, Walker

pytestmark = [pytest.mark.once, pytest.mark.xdist_group("service"), pytest.mark.extended]

CLIENTS = Path(__file__).parent
PROGRAMS = CLIENTS / "generators"
PACKAGES = CLIENTS / "node_modules"
INSTALLED = ROOT / "var/generators"  # by the long run
BIN = Path(sys.executable).parent
NODE = BIN / "node"

SHOP = SHOPS[0]
ORGANIZATION, IMPORTER = 8801, 8802  # other tests use the same service
COUNT = times(1000, long=3000)

# The parameters of each list. Each filter selects some of the payments, but not all.
QUERIES: dict[str, dict[str, Any]] = {
    "all": {},
    "sort": {"sort": "asc"},
    "status": {"status": ["failed", "expired"]},
    "method": {"method": ["ideal", "paypal"]},
    "customerId": {"customerId": ["ct_fQUwjPa", "ct_Ct7Lmjr"]},
    "sequenceType": {"sequenceType": ["recurring"]},
    "currency": {"currency": ["GBP", "USD"]},
    **{
        f"{field}[{bound}]": {f"{field}[{bound}]": time}
        for field in ("createdAt", "paidAt")
        for bound, time in (("gte", "2025-06-01T12:00:00+02:00"), ("gt", "2025-06-01T10:00:00.000Z"))
    },
    **{
        f"{field}[{bound}]": {f"{field}[{bound}]": "2025-06-01"}
        for field in ("createdAt", "paidAt")
        for bound in ("lte", "lt")
    },
    **{f"amount[{bound}]": {f"amount[{bound}]": "30.00", "currency": ["EUR"]} for bound in ("gte", "gt", "lte", "lt")},
    "metadata": {"metadata": ["order:18718", "note:a: b&c=é"]},
}

# What the generated model of the details does not know.
DETAILS = {
    "cardLabel": "Visa",
    "settlement": {"id": "stl_1", "parts": [1, 2.5, True, None]},
    "reference": "00012",
    "fee": 0.25,
}

# The payment that each client imports. The client in Ruby does not send null.
SENT = {**DETAILS, "settlement": {"id": "stl_1", "parts": [1, 2.5, True]}}
IMPORTED = lines.record(organizationId=str(IMPORTER), resource=lines.MISSING, details=SENT)


class Generator(NamedTuple):
    """A generator of clients: shell commands that make and run a client in an empty directory.

    `program` is the client's source. The commands have the variables of `variables`; `packages` has the npm packages.
    """

    program: str
    generate: str
    run: str
    build: str = "true"
    packages: Path = INSTALLED / "node_modules"


def variables(generator: Generator, document: Path) -> dict[str, str]:
    jar = next(INSTALLED.glob("venv/lib/*/site-packages/openapi_generator_cli/openapi-generator.jar"), "")
    return {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "DOCUMENT": str(document),
        "PACKAGES": str(generator.packages),
        "PROGRAM": str(PROGRAMS / generator.program),
        "CLIENTS": str(CLIENTS),
        "PYTHON": str(INSTALLED / "venv/bin/python"),
        "JAR": str(jar),
        # The generator contains the JSON library of its Java clients.
        "CLASSPATH": f"classes:{jar}:/usr/share/java/jakarta-annotation-api.jar",
    }


OPENAPI_GENERATOR = "java -jar $JAR generate --input-spec $DOCUMENT --additional-properties packageName=generated"
TYPESCRIPT = f"""
    cp $PROGRAM {PROGRAMS}/read_lists.ts $CLIENTS/tsconfig.json . && ln -s $PACKAGES node_modules
    node node_modules/typescript/bin/tsc
"""

GENERATORS = {
    "openapi-python-client": Generator(
        "openapi_python_client.py",
        # The generator would format the code with ruff. It warns that it knows only bodies in JSON.
        "echo 'post_hooks: []' >settings.yaml && openapi-python-client generate --meta none "
        "--config settings.yaml --path $DOCUMENT --output-path generated",
        f"PYTHONPATH=. {sys.executable} $PROGRAM",
    ),
    "@hey-api/openapi-ts": Generator(
        "hey_api.ts",
        "node $PACKAGES/@hey-api/openapi-ts/bin/run.js --no-log-file --input $DOCUMENT --output generated",
        "node hey_api.js",
        build=TYPESCRIPT,
        packages=PACKAGES,
    ),
    "openapi-typescript-codegen": Generator(
        "openapi_typescript_codegen.ts",
        "node $PACKAGES/openapi-typescript-codegen/bin/index.js --client axios --useOptions "
        "--input $DOCUMENT --output generated",
        "node openapi_typescript_codegen.js",
        build=TYPESCRIPT,
        packages=PACKAGES,
    ),
    "openapi-generator go": Generator(
        "openapi_generator.go",
        f"{OPENAPI_GENERATOR} --generator-name go && rm -r test && go mod edit -module generated",
        "./client",
        build="mkdir client.d && cp $PROGRAM client.d && GOFLAGS=-mod=mod GOPROXY=off go build -o client ./client.d",
    ),
    "openapi-generator java": Generator(
        "OpenapiGenerator.java",
        f"{OPENAPI_GENERATOR},openApiNullable=false,useJakartaEe=true --generator-name java --library native",
        "java OpenapiGenerator",
        build="javac -nowarn -d classes $(find src/main -name '*.java') $PROGRAM",
    ),
    "openapi-generator php": Generator(
        "openapi_generator.php",
        f"{OPENAPI_GENERATOR} --generator-name php --type-mappings Details=mixed",
        "php $PROGRAM",
        build="find lib -name '*.php' | xargs -n 1 php -l",
    ),
    "openapi-generator python": Generator(
        "openapi_generator.py",
        f"{OPENAPI_GENERATOR} --generator-name python",
        "PYTHONPATH=. $PYTHON $PROGRAM",
        build="$PYTHON -m compileall -q generated",
    ),
    "openapi-generator ruby": Generator(
        "openapi_generator.rb",
        f"{OPENAPI_GENERATOR},gemName=generated --generator-name ruby --type-mappings Details=Object",
        "ruby -Ilib $PROGRAM",
        build="ruby -Ilib -e 'require \"generated\"; Generated.constants.each { |name| Generated.const_get(name) }'",
    ),
    "openapi-generator typescript-axios": Generator(
        "openapi_generator.ts",
        f"{OPENAPI_GENERATOR} --generator-name typescript-axios --output generated",
        "node openapi_generator.js",
        build=TYPESCRIPT,
    ),
    "openapi-fetch": Generator(
        "openapi_fetch.ts",
        "node $PACKAGES/openapi-typescript/bin/cli.js $DOCUMENT --output generated/index.ts",
        "node openapi_fetch.js",
        build=TYPESCRIPT,
    ),
    "orval": Generator(
        "orval.ts",
        "node $PACKAGES/orval/dist/bin/orval.mjs --client axios-functions "
        "--input $DOCUMENT --output generated/index.ts",
        "node orval.js",
        build=TYPESCRIPT,
    ),
}
SECOND_STAGE = {"openapi-python-client", "@hey-api/openapi-ts"}


@pytest.fixture(scope="module")
def document(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Download the OpenAPI document."""
    path = tmp_path_factory.mktemp("clients") / "openapi.json"
    with Walker(service.base_url, "") as client:
        path.write_bytes(client.send("/docs/openapi.json")[1])
    return path


@pytest.fixture(scope="module")
def key(service: Service) -> str:
    """Import payments, and return a key for them."""
    service.create_organization(ORGANIZATION)
    service.import_records(map(encode, records()))
    return service.create_api_key(organization=ORGANIZATION, mode=Mode.LIVE)


def records() -> Iterator[Record]:
    """Yield payments. Some have metadata and details beyond those of the demo."""
    demo = demo_records(COUNT, seed=4, until=NOON)
    for number, record in enumerate(record for record in demo if record.organization_id == str(SHOP.id)):
        own = replace(record, organization_id=str(ORGANIZATION))
        if number % 50 == 0:
            own = replace(own, details=Raw(encode(DETAILS)))
        if own.metadata == Raw(b'{"order":"18718"}'):
            own = replace(own, metadata=Raw(encode({"order": "18718", "note": "a: b&c=é"})))
        yield own


class Lists(NamedTuple):
    """The IDs of each list, the details of each payment, and the counts of the import."""

    ids: dict[str, list[str]]
    details: dict[str, Any]
    counts: list[int]


@pytest.fixture(scope="module")
def expected(service: Service, key: str) -> Lists:
    """Return the lists as a client without a generator reads them."""
    ids: dict[str, list[str]] = {}
    details: dict[str, Any] = {}
    with Walker(service.base_url, key) as client:
        for name, query in QUERIES.items():
            pages = client.walk("next", f"/v2/payments?{urlencode({**query, 'limit': 250}, doseq=True)}")
            payments = [payment for page in pages for payment in page["_embedded"]["payments"]]
            ids[name] = [payment["id"] for payment in payments]
            details.update({payment["id"]: payment.get("details") for payment in payments})
    return Lists(ids, details, counts=[1, 1, 0])


@pytest.fixture(scope="session")
def installed() -> None:
    """Install the generators of the long run."""
    subprocess.run([PROGRAMS / "install", INSTALLED], check=True)


@pytest.mark.processes
def test_queries_use_every_filter_and_select_some_payments(expected: Lists) -> None:
    assert QUERIES.keys() == {"all", "sort", *FILTERS}
    assert expected.ids["sort"] == expected.ids["all"][::-1]
    assert [name for name in FILTERS if not 0 < len(expected.ids[name]) < len(expected.ids["all"])] == []


@pytest.fixture(scope="module")
def table() -> Iterator[list[str]]:
    """Print the results of the generators at the end, in a table."""
    rows = ["generator | compiles | details | walk | filters | import"]
    yield rows
    report("\n".join(rows))


class GeneratedClients(NamedTuple):
    """What every generated client needs, and what it must list."""

    document: Path
    service: Service
    arguments: tuple[str, ...]
    expected: Lists
    table: list[str]

    def assert_works(self, name: str) -> None:
        """Generate a client, compile it, and compare its lists and the payment that it imports."""
        row = [name, "no", "no", "no", "no", "no"]
        payment = IMPORTED | {"id": f"pt_{'_'.join(re.findall(r'[a-z]+', name))}"}
        try:
            lists = self.run(name, json.dumps([payment]))
            stored = json.loads(self.service.exported(id=payment["id"]))
            imported = (lists.counts, stored) == (self.expected.counts, {**payment, "resource": "payment"})
            wrong = [query for query, ids in self.expected.ids.items() if lists.ids.get(query) != ids]
            lost = [
                id_ for id_, details in self.expected.details.items() if (lists.details.get(id_) or None) != details
            ]
            filters = f"{len(FILTERS) - len(set(wrong) & FILTERS.keys())} of {len(FILTERS)}"
            row[1:4] = ["yes", "lost" if lost else "complete", "no" if "all" in wrong else "yes"]
            row[4:] = [filters, "yes" if imported else "no"]
        finally:
            self.table.append(" | ".join(row))
        assert (wrong, lost, imported) == ([], [], True)

    def run(self, name: str, payments: str) -> Lists:
        generator = GENERATORS[name]
        directory = self.document.parent / generator.program
        directory.mkdir()
        environment = {**os.environ, **variables(generator, self.document)}
        for command in (generator.generate, generator.build, f'{generator.run} "$@"'):
            arguments = ["sh", "-euc", command, "sh", *self.arguments, payments]
            process = run_command(arguments, cwd=directory, env=environment)
            assert process.returncode == 0, f"{process.stdout[-2000:]}{process.stderr[-4000:]}"
        return Lists(**json.loads(process.stdout))


@pytest.fixture(scope="module")
def clients(service: Service, key: str, document: Path, expected: Lists, table: list[str]) -> GeneratedClients:
    service.create_organization(IMPORTER)
    import_key = service.create_api_key(organization=IMPORTER, mode=Mode.LIVE, scope=KeyScope.IMPORT)
    arguments = (service.base_url, key, json.dumps(QUERIES), import_key)
    return GeneratedClients(document, service, arguments, expected, table)


@pytest.mark.processes
@pytest.mark.parametrize("name", sorted(SECOND_STAGE))
def test_generated_client_lists_all_payments(clients: GeneratedClients, name: str) -> None:
    clients.assert_works(name)


@pytest.mark.long
@pytest.mark.processes
@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", sorted(GENERATORS.keys() - SECOND_STAGE))
def test_client_of_an_installed_generator_lists_all_payments(clients: GeneratedClients, name: str) -> None:
    clients.assert_works(name)


@pytest.mark.processes
@pytest.mark.parametrize(
    "linter",
    [
        "@redocly/cli/bin/cli.js lint --format=stylish --config={clients}/redocly.yaml {document}",
        "@stoplight/spectral-cli/dist/index.js lint --fail-severity=hint --ruleset={clients}/spectral.yaml {document}",
    ],
    ids=["redocly", "spectral"],
)
def test_linter_finds_neither_errors_nor_warnings(document: Path, linter: str) -> None:
    script, *arguments = linter.format(clients=CLIENTS, document=document).split()

    process = run_command([NODE, PACKAGES / script, *arguments], cwd=document.parent)

    assert process.returncode == 0, process.stdout
    assert "warning" not in process.stdout


@pytest.fixture
def prism(service: Service, document: Path, installed: None) -> Iterator[str]:
    """Start a proxy that responds with 422 or 500 to a request or a response that differs from the document."""
    script, port = INSTALLED / "node_modules/@stoplight/prism-cli/dist/index.js", free_port()
    proxy = subprocess.Popen([NODE, script, "proxy", document, service.base_url, "--errors", "--port", str(port)])
    try:
        wait_until_listening(proxy, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        proxy.terminate()
        proxy.wait()


@pytest.mark.long
@pytest.mark.processes
def test_proxy_that_validates_finds_no_difference(prism: str, key: str, expected: Lists) -> None:
    first = expected.ids["all"][0]
    paths = {
        **{f"/v2/payments?{urlencode(query, doseq=True)}": 200 for query in QUERIES.values()},
        "/v2/payments/changes?limit=250": 200,
        "/v2/payments/changes?from=now": 200,
        f"/v2/payments/{first}": 200,
        "/v2/payments/pt_unknown": 404,
        "/v2/payments?colour=red": 400,
        "/v2/payments/changes?from=AAAA": 400,
    }
    with Walker(prism, key) as client:
        responses = {path: client.send(path)[0] for path in paths}
        etag = responses[f"/v2/payments/{first}"].headers["ETag"]
        not_modified, _ = client.send(f"/v2/payments/{first}", If_None_Match=etag)

    assert {path: response.status for path, response in responses.items()} == paths
    assert not_modified.status == 304


def test_reference_names_the_generators_and_versions_that_are_tested() -> None:
    versions = {"openapi-python-client": version("openapi-python-client")}
    for packages in (PROGRAMS / "package.json", CLIENTS / "package.json"):
        parts = json.loads(packages.read_text())
        versions |= parts.get("dependencies", {}) | parts.get("devDependencies", {})
    [versions["openapi-generator"]] = re.findall(
        "^openapi-generator-cli==(.*)$", (PROGRAMS / "requirements.txt").read_text(), re.MULTILINE
    )

    table = (ROOT / "docs/api/reference.md").read_text().partition("### Generated clients")[2]
    rows = re.findall(r"^\| \[(\S+)\]\(\S+\) ([0-9.]+),? ?([a-z-]*) \|", table, re.MULTILINE)

    assert {" ".join(filter(None, (name, language))) for name, _, language in rows} == GENERATORS.keys()
    assert [name for name, stated, _ in rows if not versions[name].startswith(f"{stated}.")] == []
