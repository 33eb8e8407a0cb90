"""The files for Kubernetes, and the commands of docs/operate/containers.md. These tests need no cluster."""

import copy
import importlib
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

import payments
from tests.support.commands import run_command
from tests.support.dockerfile import Stage, stages
from tests.support.processes import ROOT
from tests.support.service import SETTINGS

pytestmark = pytest.mark.once

Resource = dict[str, Any]

KUBERNETES = ROOT / "deploy/kubernetes"
GUIDE = (ROOT / "docs/operate/containers.md").read_text()
[VERSIONS] = re.findall(r"Kubernetes (1\.\d+) to (1\.\d+)", GUIDE)
BUILD, ROLL_OUT, _ = re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)
COMPONENT = "app.kubernetes.io/component"
PODS = ("Deployment", "Job")
# Stands for git, docker and kubectl: the first writes the checkout's files, all write their arguments.
PROGRAM = """#!/bin/sh
[ "$1" != clone ] || ln -s {root} payments
printf '%s\\n' "${{0##*/}} $*" >>commands
"""


@pytest.fixture(scope="module")
def kubernetes_validate() -> Any:
    """Return the module with the schemas of Kubernetes, whose import takes two seconds."""
    return importlib.import_module("kubernetes_validate")


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


@pytest.fixture(scope="module")
def kustomization() -> Resource:
    content: Resource = load(KUBERNETES / "kustomization.yaml")
    return content


@pytest.fixture(scope="module")
def resources(kustomization: Resource) -> dict[str, Resource]:
    """Return the resources by kind."""
    return {resource["kind"]: resource for resource in (load(KUBERNETES / name) for name in kustomization["resources"])}


@pytest.fixture(scope="module")
def image() -> Stage:
    return stages(ROOT / "deploy/Dockerfile")[1]


def pod_of(resource: Resource) -> Resource:
    pod: Resource = resource["spec"]["template"]["spec"]
    return pod


def container_of(resource: Resource) -> Resource:
    container: Resource
    [container] = pod_of(resource)["containers"]
    return container


def test_every_file_is_a_resource_of_the_kustomization(kustomization: Resource) -> None:
    files = {path.name for path in KUBERNETES.iterdir()}

    assert files == {"kustomization.yaml", *kustomization["resources"]}


def test_guide_names_the_newest_known_version(kubernetes_validate: Any) -> None:
    assert kubernetes_validate.latest_version().startswith(f"{VERSIONS[1]}.")


@pytest.mark.parametrize("version", VERSIONS)
def test_resources_are_valid(kubernetes_validate: Any, resources: dict[str, Resource], version: str) -> None:
    for resource in resources.values():
        kubernetes_validate.validate(resource, version, strict=True)


def test_unknown_field_is_detected(kubernetes_validate: Any, resources: dict[str, Resource]) -> None:
    misspelt = copy.deepcopy(resources["Deployment"])
    container_of(misspelt)["livelinessProbe"] = container_of(misspelt).pop("livenessProbe")

    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(misspelt, VERSIONS[0], strict=True)


@pytest.mark.parametrize("kind", ["Deployment", "PodDisruptionBudget", "Service"])
def test_selectors_match_the_pods_of_the_service_only(resources: dict[str, Resource], kind: str) -> None:
    selector = resources[kind]["spec"]["selector"]
    pods = {name: resources[name]["spec"]["template"]["metadata"]["labels"] for name in PODS}

    labels = selector.get("matchLabels", selector).items()

    assert [name for name in PODS if labels <= pods[name].items()] == ["Deployment"]


@pytest.mark.parametrize("kind", PODS)
def test_pods_are_restricted(resources: dict[str, Resource], image: Stage, kind: str) -> None:
    user, group = map(int, image.only("USER").split(":"))
    pod = pod_of(resources[kind])

    assert pod["serviceAccountName"] == resources["ServiceAccount"]["metadata"]["name"]
    assert resources["ServiceAccount"]["automountServiceAccountToken"] is False
    assert {
        "runAsNonRoot": True,
        "runAsUser": user,
        "runAsGroup": group,
        "seccompProfile": {"type": "RuntimeDefault"},
    }.items() <= pod["securityContext"].items()
    assert container_of(resources[kind])["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@pytest.mark.parametrize("kind", PODS)
def test_pods_get_known_settings_only(resources: dict[str, Resource], kustomization: Resource, kind: str) -> None:
    [config] = kustomization["configMapGenerator"]

    assert pod_of(resources[kind])["enableServiceLinks"] is False
    assert container_of(resources[kind])["envFrom"] == [
        {"configMapRef": {"name": config["name"]}},
        {"secretRef": {"name": "payments"}},
    ]
    assert names_of(config["literals"]) <= set(SETTINGS)


def names_of(literals: list[str]) -> set[str]:
    return {literal.partition("=")[0] for literal in literals}


def test_writable_directories_are_mounts_of_a_limited_size(resources: dict[str, Resource], image: Stage) -> None:
    mounts = {mount["mountPath"]: mount["name"] for mount in container_of(resources["Deployment"])["volumeMounts"]}
    volumes = {volume["name"]: volume["emptyDir"] for volume in pod_of(resources["Deployment"])["volumes"]}

    assert set(mounts) == {"/tmp", str(Path(image.variables["RUNTIME_DIRECTORY"]).parent)}  # noqa: S108
    assert set(mounts.values()) == set(volumes)
    assert all(volume["sizeLimit"] for volume in volumes.values())


def test_probes_and_service_use_the_port_of_the_image(resources: dict[str, Resource], image: Stage) -> None:
    container = container_of(resources["Deployment"])
    probes = {name: probe["httpGet"] for name, probe in container.items() if name.endswith("Probe")}

    assert container["ports"] == [{"name": "http", "containerPort": int(image.variables["PORT"])}]
    assert {probe["port"] for probe in probes.values()} == {"http"}
    assert [port["targetPort"] for port in resources["Service"]["spec"]["ports"]] == ["http"]
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "startupProbe": "/healthz",
        "livenessProbe": "/healthz",
        "readinessProbe": "/readyz",
    }


def test_last_requests_have_time_to_finish(resources: dict[str, Resource]) -> None:
    program, pause = container_of(resources["Deployment"])["lifecycle"]["preStop"]["exec"]["command"]
    [limit] = re.findall(r'"--workers-kill-timeout", "(\d+)"', (ROOT / "payments_site/server.py").read_text())

    assert program == "sleep"
    assert int(pause) + int(limit) < pod_of(resources["Deployment"])["terminationGracePeriodSeconds"]


def test_number_of_workers_follows_from_a_limit(resources: dict[str, Resource]) -> None:
    """Without a limit, a worker would run for each processor of the node."""
    assert int(container_of(resources["Deployment"])["resources"]["limits"]["cpu"]) > 0


def test_old_pods_serve_until_new_ones_are_ready(resources: dict[str, Resource]) -> None:
    assert resources["Deployment"]["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


def test_one_migration_runs_and_does_not_wait_for_imports(resources: dict[str, Resource]) -> None:
    job = resources["Job"]

    assert {"parallelism", "completions"}.isdisjoint(job["spec"])  # both are 1
    assert container_of(job)["command"] == [".venv/bin/python", "manage.py", "migrate"]
    assert container_of(job)["env"] == [{"name": "PGOPTIONS", "value": "-c lock_timeout=2s"}]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the commands of the guide that build the image and write the overlay, and return their directory."""
    directory = tmp_path_factory.mktemp("built")
    programs = directory / "bin"
    programs.mkdir()
    for name in ("git", "docker", "kubectl"):
        (programs / name).write_text(PROGRAM.format(root=ROOT))
        (programs / name).chmod(0o700)
    path = f"{programs}:{os.environ['PATH']}"
    done = run_command(["sh", "-euc", BUILD], cwd=directory, env=os.environ | {"PATH": path})
    assert (done.returncode, done.stderr) == (0, "")
    return directory


@pytest.mark.processes
def test_guide_builds_the_image_that_the_pods_use(built: Path, resources: dict[str, Resource]) -> None:
    [image] = load(built / "kustomization.yaml")["images"]
    version = payments.__version__
    name = f"{image['newName']}:{version}"

    assert image["newTag"] == version
    assert {container_of(resources[kind])["image"] for kind in PODS} == {image["name"]}
    assert (built / "commands").read_text().splitlines() == [
        "git clone REPOSITORY payments",
        f"docker build --file payments/deploy/Dockerfile --build-arg VERSION={version} --tag {name} payments",
        f"docker push {name}",
        "kubectl create secret generic payments --from-env-file=secret.env",
    ]


@pytest.mark.processes
def test_overlay_of_the_guide_fits_the_kustomization(built: Path, kustomization: Resource) -> None:
    overlay = load(built / "kustomization.yaml")
    [config] = kustomization["configMapGenerator"]
    [changes] = overlay["configMapGenerator"]

    assert [(built / directory).resolve() for directory in overlay["resources"]] == [KUBERNETES]
    assert (changes["name"], changes["behavior"]) == (config["name"], "merge")
    assert names_of(changes["literals"]) < names_of(config["literals"])


@pytest.mark.processes
def test_secret_of_the_guide_is_private_and_complete(built: Path) -> None:
    secret = built / "secret.env"
    values = dict(line.split("=", 1) for line in secret.read_text().splitlines())

    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert set(values) == {"DATABASE_URL", "SECRET_KEY"}
    assert len(values["SECRET_KEY"]) == 64


def test_guide_migrates_before_it_replaces_the_pods(resources: dict[str, Resource]) -> None:
    [excluded] = re.findall(rf"--selector='{COMPONENT}!=(\w+)'", ROLL_OUT)
    first = {kind for kind, resource in resources.items() if resource["metadata"]["labels"].get(COMPONENT) != excluded}
    names = {f"{kind.lower()}/{resource['metadata']['name']}" for kind, resource in resources.items()}

    assert first == {"Job", "ServiceAccount"}
    assert set(re.findall(r"(?:job|deployment)/[\w-]+", GUIDE.replace("job payments", "job/payments"))) <= names
