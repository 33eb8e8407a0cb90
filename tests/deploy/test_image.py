"""The Dockerfile and compose.yaml, as far as reading them goes: there is no Docker to try them with."""

import os
import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from payments.docs.pages import PAGES
from payments_site.environment import database
from tests.support.dockerfile import Stage, stages
from tests.support.processes import ROOT
from tests.support.service import SETTINGS

LINES_OF_ENV = re.compile(r"^([A-Z_]+)='", re.MULTILINE)
# What is named as lying beside manage.py.
READ = re.compile(r'BASE_DIR / "([^"]+)"')
NEVER = (
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
    read: dict[str, Any] = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())
    return read


def copied(stage: Stage) -> list[str]:
    """Return what a stage takes from the checkout."""
    copies = [text.split() for text in stage.all("COPY")]
    return [name for *names, _ in copies for name in names if not names[0].startswith("--from=")]


def is_sent(name: str) -> bool:
    """Tell whether .dockerignore lets a file through: the last pattern that matches it, or a directory above, says."""
    sent = True
    above = [name, *map(str, Path(name).parents)]
    for pattern in filter(None, (ROOT / ".dockerignore").read_text().splitlines()):
        plain = pattern.lstrip("!").removeprefix("**/")
        if not pattern.startswith("#") and any(fnmatch(each, plain) or Path(each).name == plain for each in above):
            sent = pattern.startswith("!")
    return sent


def test_what_is_copied_is_there_and_is_sent(image: tuple[Stage, Stage]) -> None:
    build, final = image
    listed = subprocess.run(["git", "ls-files", *copied(build)], cwd=ROOT, capture_output=True, text=True, check=True)
    files = listed.stdout.splitlines()

    assert copied(final) == []
    assert [name for name in copied(build) if not (ROOT / name).exists()] == []
    assert [name for name in files if not is_sent(name)] == []
    assert {f"docs/{page.file}" for page in PAGES} <= set(files)


def test_what_the_service_reads_of_its_checkout_is_copied(image: tuple[Stage, Stage]) -> None:
    folders = (ROOT / "payments", ROOT / "payments_site")
    sources = [file.read_text() for folder in folders for file in folder.rglob("*.py")]
    read = {name for source in sources for name in READ.findall(source)}

    assert {"docs", "pyproject.toml"} <= read
    assert [name for name in read if not any(overlaps(name, each) for each in copied(image[0]))] == ["var"]


def overlaps(name: str, copied: str) -> bool:
    """Tell whether one is the other, or lies within it."""
    return Path(name).is_relative_to(copied) or Path(copied).is_relative_to(name)


@pytest.mark.parametrize("name", NEVER)
def test_what_is_nobodys_business_is_not_sent(name: str) -> None:
    assert not is_sent(name)


def test_packages_are_those_of_the_lock(image: tuple[Stage, Stage]) -> None:
    build, final = image
    install = (ROOT / "scripts/install").read_text()

    assert "scripts/install $EXTRA" in build.all("RUN")
    assert "--require-hashes" in install
    assert "--no-deps" in install
    assert not any("pip" in step or "install" in step for step in final.all("RUN"))


def test_the_service_is_nobody_of_importance_and_its_health_is_looked_at(image: tuple[Stage, Stage]) -> None:
    final = image[1]
    user, group = map(int, final.only("USER").split(":"))

    assert user > 0 < group
    assert final.command == ["scripts/start"]
    assert final.variables["HOST"] == "0.0.0.0"  # noqa: S104
    assert "/healthz" in final.health_check[-1]
    compile(final.health_check[-1], "HEALTHCHECK", "exec")


def test_every_image_is_named_by_its_minor_version(image: tuple[Stage, Stage], compose: dict[str, Any]) -> None:
    images = [stage.base for stage in image]
    images += [service["image"] for service in compose["services"].values() if "build" not in service]

    assert len(images) == 5
    assert [name for name in images if ":" not in name or name.endswith(":latest")] == []
    assert image[0].base == image[1].base


def test_every_file_that_compose_names_is_there(compose: dict[str, Any]) -> None:
    mounts = [mount for service in compose["services"].values() for mount in service.get("volumes", [])]
    files = [ROOT / "deploy" / mount.split(":")[0] for mount in mounts if mount.startswith(".")]
    scripts = [file for file in files if file.suffix == ".sh"]
    build = compose["services"]["service"]["build"]

    assert len(files) == 3
    assert [file for file in files if not file.exists()] == []
    assert [file for file in scripts if not os.access(file, os.X_OK)] == []
    assert (ROOT / "deploy" / build["context"] / build["dockerfile"]).exists()
    assert {mount.split(":")[0] for mount in mounts if not mount.startswith(".")} == set(compose["volumes"])


def test_every_variable_that_compose_takes_is_made_by_the_readmes_steps(compose: dict[str, Any]) -> None:
    taken = set(re.findall(r"\$\{([A-Z_]+)", (ROOT / "deploy/compose.yaml").read_text()))
    steps = (ROOT / "deploy/README.md").read_text().partition("## With Compose")[2]

    assert taken == set(LINES_OF_ENV.findall(steps))


@pytest.mark.parametrize("name", ["service", "migrate"])
def test_what_compose_sets_are_settings(compose: dict[str, Any], name: str) -> None:
    assert set(compose["services"][name]["environment"]) <= set(SETTINGS)


@pytest.mark.parametrize("name", ["DATABASE_URL", "DATABASE_REPLICA_URL"])
def test_either_address_names_both_servers(compose: dict[str, Any], name: str) -> None:
    """A replica that was made the primary is then found."""
    url = compose["services"]["service"]["environment"][name].replace("${PAYMENTS_PASSWORD:?}", "secret")

    found = database(url)

    assert found["HOST"] == "primary,replica"
    assert set(found["HOST"].split(",")) <= set(compose["services"])
    assert (found["USER"], found["PASSWORD"], found["NAME"]) == ("payments", "secret", "payments")
    assert "target_session_attrs" in found["OPTIONS"]


def test_every_service_is_hardened_and_none_but_the_proxy_is_reached(compose: dict[str, Any]) -> None:
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

    options = mounts[image[1].variables["RUNTIME_DIRECTORY"]].split(",")
    assert {f"uid={user}", f"gid={group}", "mode=0700"} <= set(options)


def test_services_wait_for_what_they_need(compose: dict[str, Any]) -> None:
    needs = {name: service.get("depends_on", {}) for name, service in compose["services"].items()}

    assert needs == {
        "caddy": {"service": {"condition": "service_healthy"}},
        "service": {
            "migrate": {"condition": "service_completed_successfully"},
            "replica": {"condition": "service_healthy"},
        },
        "migrate": {"primary": {"condition": "service_healthy"}},
        "primary": {},
        "replica": {"primary": {"condition": "service_healthy"}},
    }
