"""Generated clients walk the list and use every filter, and linters accept the OpenAPI document."""

import json
import re
import shutil
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from msgspec.structs import replace

from payments.demo import SHOPS, demo_records
from payments.listing.filters import FILTERS
from payments.models import Mode
from payments.record import encode
from tests.support.commands import output_of, run_command
from tests.support.factories import NOON
from tests.support.processes import ROOT
from tests.support.service import Service, Walker

pytestmark = [pytest.mark.once, pytest.mark.xdist_group("service"), pytest.mark.extended]

CLIENTS = Path(__file__).parent
PACKAGES = CLIENTS / "node_modules"
NODE = Path(sys.executable).with_name("node")
GENERATED = "generated"

SHOP = SHOPS[0]
ORGANIZATION = 8801  # other tests use the same service
COUNT = 1000

# The value of each filter. Each selects some of the payments, but not all.
VALUES: dict[str, Any] = {
    "all": None,
    "sort": "asc",
    "status": ["failed", "expired"],
    "method": ["ideal", "paypal"],
    "customerId": ["ct_fQUwjPa", "ct_Ct7Lmjr"],
    "sequenceType": ["recurring"],
    "currency": ["GBP", "USD"],
    **{
        f"{field}[{bound}]": "2025-06-01T12:00:00+02:00" for field in ("createdAt", "paidAt") for bound in ("gte", "gt")
    },
    **{f"{field}[{bound}]": "2025-06-01" for field in ("createdAt", "paidAt") for bound in ("lte", "lt")},
    **{f"amount[{bound}]": "30.00" for bound in ("gte", "gt", "lte", "lt")},
    "metadata": {"order": "18718"},
}


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
    demo = demo_records(COUNT, seed=4, until=NOON)
    of_shop = (record for record in demo if record.organization_id == str(SHOP.id))
    service.create_organization(ORGANIZATION)
    service.import_records(encode(replace(record, organization_id=str(ORGANIZATION))) for record in of_shop)
    return service.create_api_key(organization=ORGANIZATION, mode=Mode.LIVE)


@pytest.fixture(scope="module")
def expected(service: Service, key: str) -> dict[str, list[str]]:
    """Return the IDs of each filter, as a client without a generator reads them."""
    with Walker(service.base_url, key) as client:
        return {name: walked(client, name) for name in VALUES}


def walked(client: Walker, name: str) -> list[str]:
    pages = client.walk("next", f"/v2/payments?{urlencode(parameters(name))}")
    return [payment["id"] for page in pages for payment in page["_embedded"]["payments"]]


def parameters(name: str) -> dict[str, str]:
    """Return the query parameters of a filter."""
    match VALUES[name]:
        case None:
            return {}
        case list(words):
            return {name: ",".join(words)}
        case dict(pairs):
            return {f"{name}[{key}]": value for key, value in pairs.items()}
    return {name: VALUES[name]} | ({"currency": "EUR"} if name.startswith("amount") else {})


@pytest.mark.processes
def test_values_use_every_filter_and_select_some_payments(expected: dict[str, list[str]]) -> None:
    assert VALUES.keys() == {"all", "sort", *FILTERS}
    assert expected["sort"] == expected["all"][::-1]
    assert [name for name in FILTERS if not 0 < len(expected[name]) < len(expected["all"])] == []


@pytest.mark.processes
def test_client_of_openapi_python_client_uses_every_filter(
    service: Service, key: str, document: Path, expected: dict[str, list[str]]
) -> None:
    directory = document.parent / "openapi-python-client"
    generator = Path(sys.executable).with_name("openapi-python-client")
    settings = directory.with_suffix(".yaml")
    settings.write_text("post_hooks: []")  # the generator would format the code with ruff
    run: list[str | Path] = [generator, "generate", "--meta", "none", "--fail-on-warning", "--config", settings]
    output_of([*run, "--path", document, "--output-path", directory / GENERATED], cwd=document.parent)

    program = CLIENTS / "filter_with_openapi_python_client.py"
    output = output_of([sys.executable, program, directory, service.base_url, key, json.dumps(VALUES)])

    assert json.loads(output) == expected


@pytest.mark.processes
@pytest.mark.parametrize(
    ("generator", "program"),
    [
        (
            "openapi-typescript-codegen/bin/index.js --client axios --useOptions --input {document} --output {output}",
            "filter_with_openapi_typescript_codegen.ts",
        ),
        ("@hey-api/openapi-ts/bin/run.js --no-log-file --input {document} --output {output}", "filter_with_hey_api.ts"),
    ],
    ids=["openapi-typescript-codegen", "@hey-api/openapi-ts"],
)
def test_typescript_client_uses_every_filter(
    key: str, document: Path, expected: dict[str, list[str]], generator: str, program: str
) -> None:
    directory = document.parent / Path(program).stem
    script, *options = generator.format(document=document, output=directory / GENERATED).split()
    output_of([NODE, PACKAGES / script, *options], cwd=document.parent)

    compiled = compile_typescript(CLIENTS / program, directory=directory)
    output = output_of([NODE, compiled, key, json.dumps(VALUES)])

    assert json.loads(output) == expected


def compile_typescript(program: Path, *, directory: Path) -> Path:
    """Check the types of a program and of the client in its directory, and return the program in JavaScript."""
    for source in (program, CLIENTS / "tsconfig.json"):
        shutil.copy(source, directory)
    (directory / PACKAGES.name).symlink_to(PACKAGES)
    process = run_command([NODE, PACKAGES / "typescript/bin/tsc"], cwd=directory)
    assert process.returncode == 0, process.stdout
    return directory / f"{program.stem}.js"


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


def test_reference_names_the_versions_that_are_tested() -> None:
    packages = json.loads((CLIENTS / "package.json").read_text())["devDependencies"]
    versions = {"openapi-python-client": version("openapi-python-client"), **packages}

    rows = re.findall(r"^\| \[(\S+)\]\(\S+\) ([0-9.]+) \|", (ROOT / "docs/api/reference.md").read_text(), re.MULTILINE)

    assert {name for name, _ in rows} == {"openapi-python-client", "openapi-typescript-codegen", "@hey-api/openapi-ts"}
    assert [name for name, stated in rows if not versions[name].startswith(f"{stated}.")] == []
