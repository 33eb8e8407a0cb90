"""Fixtures for tests of the state of a process."""

from pathlib import Path

import pytest
from pytest_django import Settings


@pytest.fixture
def directory(tmp_path: Path, settings: Settings) -> Path:
    """A runtime directory that does not exist yet."""
    settings.RUNTIME_DIRECTORY = directory = tmp_path / "run"
    return directory
