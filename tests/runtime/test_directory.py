"""The runtime directory is private, or it is not used."""

import os
import stat
from pathlib import Path

import pytest
from pytest_django import Settings

from payments.runtime.directory import RuntimeDirectoryError, prepare_runtime_directory

pytestmark = pytest.mark.once


@pytest.fixture
def path(tmp_path: Path, settings: Settings) -> Path:
    settings.PAYMENTS_RUNTIME_DIRECTORY = path = tmp_path / "var" / "run"
    return path


def test_directory_is_created_for_its_owner_only(path: Path) -> None:
    assert prepare_runtime_directory() == prepare_runtime_directory() == path

    assert [stat.S_IMODE(directory.stat().st_mode) for directory in (path, path.parent)] == [0o700, 0o700]


@pytest.mark.parametrize("mode", [0o700, 0o777, 0o1777, 0o2775, 0o2777])
def test_directory_is_private_in_any_mount(path: Path, mode: int) -> None:
    """Mounts of Compose, Docker and Kubernetes. On Linux, a directory inherits the set-group-ID bit."""
    path.parent.mkdir()
    path.parent.chmod(mode)

    assert prepare_runtime_directory() == prepare_runtime_directory() == path

    assert path.stat().st_mode & 0o777 == 0o700
    assert stat.S_IMODE(path.parent.stat().st_mode) == mode


@pytest.mark.parametrize("mode", [0o701, 0o710, 0o770, 0o755, 0o777])
def test_directory_accessible_to_others_is_refused(path: Path, mode: int) -> None:
    prepare_runtime_directory().chmod(mode)

    with pytest.raises(RuntimeDirectoryError, match=f"is accessible to other users. Run: chmod 700 {path}$"):
        prepare_runtime_directory()


def test_directory_of_another_user_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare_runtime_directory()
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)

    with pytest.raises(RuntimeDirectoryError, match="belongs to another user"):
        prepare_runtime_directory()


def test_symbolic_link_is_refused(path: Path) -> None:
    prepare_runtime_directory().rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))

    with pytest.raises(RuntimeDirectoryError, match="is a symbolic link"):
        prepare_runtime_directory()


@pytest.mark.parametrize(
    ("path_under", "reason"),
    [
        ("missing/var/run", "No such file or directory"),
        ("file", "File exists"),
        ("file/run", "File exists"),
        ("file/run/private", "Not a directory"),
    ],
)
def test_directory_that_cannot_be_created_is_refused(
    tmp_path: Path, settings: Settings, path_under: str, reason: str
) -> None:
    (tmp_path / "file").touch()
    settings.PAYMENTS_RUNTIME_DIRECTORY = tmp_path / path_under

    with pytest.raises(RuntimeDirectoryError) as error:
        prepare_runtime_directory()

    assert str(error.value) == (
        f"RUNTIME_DIRECTORY {tmp_path / path_under} cannot be created: {reason}. "
        "Set it to a directory that this user can create."
    )
