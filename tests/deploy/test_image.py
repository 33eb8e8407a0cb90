"""The Dockerfile and compose.yaml. These tests read the files and do not run Docker."""

import os
import re
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import get_commands

from payments.demo import SHOPS
from payments.docs.pages import PAGES
from payments_site.environment import database
from tests.support.commands import output_of
from tests.support.dockerfile import Stage, stages
from tests.support.processes import ROOT
from tests.support.service import SETTINGS

pytestmark = pytest.mark.once

ENV_LINE = re.compile(r"^([A-Z_]+)='", re.MULTILINE)
# PostgreSQL's versions have two numbers.
EXACT_VERSION = re.compile(r"^(?:postgres:\d+\.\d+|(?!postgres)\w+:\d+\.\d+\.\d+)(?:-|$)")
# A path in the project folder.
PROJECT_PATH = re.compile(r'(?:BASE_DIR|parents\[\d\]) / "([^"]+)"')
PRIVATE_FILES = (
    ".git/config",
    ".venv/bin/python",
    "var/secret_key",
    "tests/support/service.py",
    "deploy/.env",
    "payments/__pycache__/x.pyc",
)
HARDENED = {"read_only": True, "cap_drop": ["ALL"], "security_opt": ["no-new-privileges:true"]}


@pytest.fixture(scope="module")
def image() -> tuple[Stage, Stage]:
    build, final = stages(ROOT / "deploy/Dockerfile")
    return build, final


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())
    return content


def copied(stage: Stage) -> list[str]:
    """Return the paths that a stage copies from the checkout."""
    copies = [text.split() for text in stage.all("COPY")]
    return [name for *names, _ in copies for name in names if not names[0].startswith("--from=")]


def in_build_context(name: str) -> bool:
    """Return whether .dockerignore includes a file. The last pattern that matches it or a parent directory decides."""
    is_included = True
    paths = [name, *map(str, Path(name).parents)]
    for pattern in filter(None, (ROOT / ".dockerignore").read_text().splitlines()):
        plain = pattern.lstrip("!").removeprefix("**/")
        if not pattern.startswith("#") and any(fnmatch(path, plain) or Path(path).name == plain for path in paths):
            is_included = pattern.startswith("!")
    return is_included


@pytest.mark.needs("git")
@pytest.mark.processes
def test_copied_files_exist_and_are_included(image: tuple[Stage, Stage]) -> None:
    build, final = image
    files = output_of(["git", "ls-files", *copied(build)], cwd=ROOT).splitlines()

    assert copied(final) == []
    assert [name for name in copied(build) if not (ROOT / name).exists()] == []
    assert [name for name in files if not in_build_context(name)] == []
    assert {f"docs/{page.file}" for page in PAGES} <= set(files)


def test_all_paths_in_the_settings_are_copied(image: tuple[Stage, Stage]) -> None:
    folders = (ROOT / "payments", ROOT / "payments_site")
    sources = [file.read_text() for folder in folders for file in folder.rglob("*.py")]
    names = {name for source in sources for name in PROJECT_PATH.findall(source)}

    assert "docs" in names
    assert {name for name in names if not any(overlaps(name, other) for other in copied(image[0]))} == {"var"}


def overlaps(name: str, copied: str) -> bool:
    """Return whether one path is the other, or contains it."""
    return Path(name).is_relative_to(copied) or Path(copied).is_relative_to(name)


@pytest.mark.parametrize("name", PRIVATE_FILES)
def test_private_files_are_not_included(name: str) -> None:
    assert not in_build_context(name)


def test_packages_are_installed_from_the_lock_file(image: tuple[Stage, Stage]) -> None:
    build, final = image
    install = (ROOT / "scripts/install").read_text()

    assert "scripts/install $EXTRA" in build.all("RUN")
    assert "--require-hashes" in install
    assert "--no-deps" in install
    assert not any("pip" in step or "install" in step for step in final.all("RUN"))


def test_image_has_an_unprivileged_user_and_a_health_check(image: tuple[Stage, Stage]) -> None:
    final = image[1]
    user, group = map(int, final.only("USER").split(":"))

    assert user > 0 < group
    assert final.command == ["scripts/start"]
    assert final.variables["HOST"] == "0.0.0.0"  # noqa: S104
    assert "/healthz" in final.health_check[-1]
    compile(final.health_check[-1], "HEALTHCHECK", "exec")


def test_version_of_the_image_is_a_label(image: tuple[Stage, Stage], compose: dict[str, Any]) -> None:
    assert "VERSION=unknown" in image[1].all("ARG")
    assert 'org.opencontainers.image.version="$VERSION"' in image[1].only("LABEL")
    assert compose["services"]["service"]["build"]["args"] == ["VERSION"]


@pytest.mark.extended
@pytest.mark.processes
def test_compose_file_has_valid_syntax() -> None:
    check = Path(sys.executable).with_name("check-jsonschema")

    output_of([check, "--builtin-schema", "vendor.compose-spec", ROOT / "deploy/compose.yaml"])


def test_images_are_pinned_to_an_exact_version(image: tuple[Stage, Stage], compose: dict[str, Any]) -> None:
    images = [stage.base for stage in image]
    images += [service["image"] for service in compose["services"].values() if "build" not in service]

    assert len(images) == 5
    assert [name for name in images if not EXACT_VERSION.search(name)] == []
    assert image[0].base == image[1].base


def test_files_that_compose_uses_exist(compose: dict[str, Any]) -> None:
    mounts = [mount for service in compose["services"].values() for mount in service.get("volumes", [])]
    files = [ROOT / "deploy" / mount.split(":")[0] for mount in mounts if mount.startswith(".")]
    scripts = [file for file in files if file.suffix == ".sh"]
    build = compose["services"]["service"]["build"]

    assert len(files) == 3
    assert [file for file in files if not file.exists()] == []
    assert [file for file in scripts if not os.access(file, os.X_OK)] == []
    assert (ROOT / "deploy" / build["context"] / build["dockerfile"]).exists()
    assert {mount.split(":")[0] for mount in mounts if not mount.startswith(".")} == set(compose["volumes"])


def test_readme_creates_all_variables_of_compose(compose: dict[str, Any]) -> None:
    variables = set(re.findall(r"\$\{([A-Z_]+)", (ROOT / "deploy/compose.yaml").read_text()))

    assert variables == set(ENV_LINE.findall(compose_steps()))


def test_first_look_uses_existing_commands_and_an_organization_of_the_demo() -> None:
    commands = re.findall(r"^manage (\w+)", compose_steps(), re.MULTILINE)
    [organization] = re.findall(r"--organization (\d+)", compose_steps())

    assert commands == ["create_demo_payments", "create_api_key"]
    assert set(commands) <= set(get_commands())
    assert int(organization) in {shop.id for shop in SHOPS}


def compose_steps() -> str:
    """Return the section of the README about Compose."""
    return (ROOT / "deploy/README.md").read_text().partition("## With Compose")[2].partition("\n## ")[0]


@pytest.mark.parametrize("name", ["service", "migrate"])
def test_compose_sets_only_known_settings(compose: dict[str, Any], name: str) -> None:
    assert set(compose["services"][name]["environment"]) <= set(SETTINGS)


@pytest.mark.parametrize("name", ["DATABASE_URL", "DATABASE_REPLICA_URL"])
def test_database_urls_name_both_servers(compose: dict[str, Any], name: str) -> None:
    """So the service finds the new primary after the replica is promoted."""
    url = compose["services"]["service"]["environment"][name].replace("${PAYMENTS_PASSWORD:?}", "secret")

    settings = database(url)

    assert settings["HOST"] == "primary,replica"
    assert set(settings["HOST"].split(",")) <= set(compose["services"])
    assert (settings["USER"], settings["PASSWORD"], settings["NAME"]) == ("payments", "secret", "payments")
    assert "target_session_attrs" in settings["OPTIONS"]


def test_services_are_hardened_and_only_the_proxy_is_public(compose: dict[str, Any]) -> None:
    services = compose["services"]

    assert [name for name, service in services.items() if not HARDENED.items() <= service.items()] == []
    assert [name for name, service in services.items() if "ports" in service] == ["caddy"]
    assert compose["networks"]["database"] == {"internal": True}
    assert {name for name, service in services.items() if service["networks"] == ["database"]} == {
        *("migrate", "primary", "replica")
    }


@pytest.mark.parametrize("name", ["service", "migrate"])
def test_runtime_directory_is_a_tmpfs_of_the_images_user(
    image: tuple[Stage, Stage], compose: dict[str, Any], name: str
) -> None:
    user, group = image[1].only("USER").split(":")

    mounts = dict(mount.split(":") for mount in compose["services"][name]["tmpfs"])

    options = mounts[str(Path(image[1].variables["RUNTIME_DIRECTORY"]).parent)].split(",")
    assert {f"uid={user}", f"gid={group}", "mode=0700"} <= set(options)


def test_services_wait_for_their_dependencies(compose: dict[str, Any]) -> None:
    dependencies = {name: service.get("depends_on", {}) for name, service in compose["services"].items()}

    assert dependencies == {
        "caddy": {"service": {"condition": "service_healthy"}},
        "service": {
            "migrate": {"condition": "service_completed_successfully"},
            "replica": {"condition": "service_healthy"},
        },
        "migrate": {"primary": {"condition": "service_healthy"}},
        "primary": {},
        "replica": {"primary": {"condition": "service_healthy"}},
    }
