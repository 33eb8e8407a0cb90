"""The storage of static files in tests: a page that links a missing file fails, as in production.

A release of Django can remove a file that a page of the project links.
"""

from functools import cache

from django.contrib.staticfiles.finders import find
from django.contrib.staticfiles.storage import StaticFilesStorage


class StrictStaticFiles(StaticFilesStorage):
    """Finds each file without `collectstatic`."""

    def url(self, name: str | None) -> str:
        """Return the path of a file. Raises `ValueError` if no package has it."""
        if name is None or not exists(name):
            raise ValueError(f"No package has the static file {name!r}.")
        return super().url(name)


@cache
def exists(name: str) -> bool:
    return find(name) is not None
