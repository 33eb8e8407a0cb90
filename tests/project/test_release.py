"""scripts/release prepares a release, or says why not and leaves the checkout as it was."""

import json
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from tests.support.commands import output_of, run_command
from tests.support.processes import ROOT
from tests.support.service import inherited_environment

pytestmark = [pytest.mark.once, pytest.mark.extended, pytest.mark.processes, pytest.mark.needs("git")]

CHANGELOG = "# Changelog\n\n## Unreleased\n\n### Added\n\n- A list.\n\n## 1.2.0rc1 - 2026-01-31\n\n- The first.\n"
LOCK = "requirements/release.txt"


def git(checkout: Path, *arguments: str) -> str:
    author = ("-c", "user.name=Tests", "-c", "user.email=tests@example.com", "-c", "commit.gpgsign=false")
    return output_of(["git", *author, *arguments], cwd=checkout)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clone whose last version is 1.2.0rc1, with the packages of this checkout."""
    checkout = tmp_path / "checkout"
    for name in output_of(["git", "ls-files", ":!tests", ":!benchmarks"], cwd=ROOT).splitlines():
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, checkout / name)
    (checkout / "CHANGELOG.md").write_text(CHANGELOG)
    (checkout / LOCK).touch()
    git(tmp_path, "init", "--quiet", "--initial-branch", "main", str(checkout))
    git(checkout, "add", "--all")
    git(checkout, "commit", "--quiet", "--message", "Start")
    packages = checkout / ".venv"
    packages.mkdir()
    for name in ("bin", "lib", "pyvenv.cfg"):
        (packages / name).symlink_to(ROOT / ".venv" / name)
    shutil.copy(checkout / LOCK, packages / "installed-release.txt")
    shutil.copytree(checkout / "payments/static", packages / "collected-static")
    (checkout / "staticfiles").mkdir()
    (checkout / "staticfiles/staticfiles.json").touch()
    return checkout


def release(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_command([checkout / "scripts/release", *arguments], cwd=checkout, env=inherited_environment())


@pytest.mark.parametrize("version", ["1.2.0", "1.2.0rc2"])
def test_release_has_its_version_in_all_files(checkout: Path, version: str) -> None:
    done = release(checkout, version)

    assert done.returncode == 0, done.stderr
    section = f"## Unreleased\n\n## {version} - {datetime.now(UTC).date()}\n"
    assert (checkout / "CHANGELOG.md").read_text() == CHANGELOG.replace("## Unreleased\n", section)
    assert git(checkout, "status", "--porcelain") == " M CHANGELOG.md\n M payments/__init__.py\n"
    wheel, packages, sdist = sorted((checkout / "dist").iterdir())
    names = [f"payments_site-{version}{end}" for end in ("-py3-none-any.whl", ".cdx.json", ".tar.gz")]
    sums = [f"{sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in (wheel, packages, sdist)]
    assert [file.name for file in (wheel, packages, sdist)] == names
    assert done.stdout.splitlines() == sums
    with tarfile.open(sdist) as archive:
        source = archive.extractfile(f"payments_site-{version}/payments/__init__.py")
        assert source
        assert f'__version__ = "{version}"' in source.read().decode()
    assert f'git tag --annotate "v{version}"' in done.stderr
    assert "Warning" not in done.stderr
    assert git(checkout, "tag") == ""


def test_release_without_changes_since_its_candidate_says_so(checkout: Path) -> None:
    remove_entries(checkout)

    done = release(checkout, "1.2.0")

    assert done.returncode == 0, done.stderr
    section = f"## 1.2.0 - {datetime.now(UTC).date()}\n\nNo changes since 1.2.0rc1.\n"
    assert section in (checkout / "CHANGELOG.md").read_text()


def test_list_of_packages_has_those_of_the_lock_file(checkout: Path) -> None:
    assert release(checkout, "1.2.0").returncode == 0

    document = json.loads((checkout / "dist/payments_site-1.2.0.cdx.json").read_text())
    main = document["metadata"]["component"]
    lock = (ROOT / "requirements.txt").read_text()
    locked = {line.split()[0].rstrip(";") for line in lock.splitlines() if "==" in line and line[0] not in " #"}
    assert document["bomFormat"] == "CycloneDX"
    assert (main["name"], main["version"]) == ("payments-site", "1.2.0")
    assert {f"{part['name']}=={part['version']}" for part in document["components"]} == locked
    assert any(package.startswith("django==") for package in locked)


def remove_entries(checkout: Path) -> None:
    (checkout / "CHANGELOG.md").write_text(CHANGELOG.replace("- A list.\n", ""))
    git(checkout, "commit", "--quiet", "--all", "--message", "Remove the entry")


def add_file(checkout: Path) -> None:
    (checkout / "new").touch()


def switch_branch(checkout: Path) -> None:
    git(checkout, "switch", "--quiet", "--create", "other")


def detach(checkout: Path) -> None:
    git(checkout, "switch", "--quiet", "--detach")


def break_build(checkout: Path) -> None:
    git(checkout, "rm", "--quiet", "docs/importing.md")
    git(checkout, "commit", "--quiet", "--message", "Remove a page")


def change_nothing(checkout: Path) -> None:
    pass


USAGE = "usage: scripts/release X.Y.Z, or X.Y.ZrcN for a candidate\n"
INVALID = ("1.2", "v1.2.0", "01.2.0", "1.2.0rc0", "1.2.0.dev1", "1.2.0\nx", "")


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        *((change_nothing, [version], USAGE) for version in INVALID),
        (change_nothing, [], USAGE),
        (change_nothing, ["1.2.0", "1.2.1"], USAGE),
        (change_nothing, ["1.2.0rc1"], "1.2.0rc1 is not newer than 1.2.0rc1, the last version in CHANGELOG.md.\n"),
        (change_nothing, ["1.1.9"], "1.1.9 is not newer than 1.2.0rc1, the last version in CHANGELOG.md.\n"),
        (remove_entries, ["1.2.1"], "CHANGELOG.md has no entries under Unreleased.\n"),
        (add_file, ["1.2.0"], "Commit or remove the changes that git status shows.\n"),
        (switch_branch, ["1.2.0"], "Switch to the branch main.\n"),
        (detach, ["1.2.0"], "Switch to the branch main.\n"),
    ],
)
def test_refused_release_changes_nothing(
    checkout: Path, change: Callable[[Path], None], arguments: list[str], message: str
) -> None:
    change(checkout)
    before = git(checkout, "status", "--porcelain")

    done = release(checkout, *arguments)

    assert (done.returncode, done.stderr) == (1, message)
    assert git(checkout, "status", "--porcelain") == before
    assert not (checkout / "dist").exists()


def test_failed_build_changes_nothing(checkout: Path) -> None:
    break_build(checkout)

    done = release(checkout, "1.2.0")

    assert done.returncode == 1
    assert "docs/importing.md" in done.stderr
    assert git(checkout, "status", "--porcelain") == ""
    assert not (checkout / "dist").exists()
