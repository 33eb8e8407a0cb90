"""The storage of static files in tests: a page that links a missing file fails, as in production."""

from functools import cache

from django.contrib.staticfiles.finders import find
from django.contrib.staticfiles.storage import StaticFilesStorage

find_once = cache(find)


class StrictStaticFiles(StaticFilesStorage):
    def url(self, name: str | None) -> str:
        if name is None or find_once(name) is None:
            raise ValueError(f"No package has the static file {name!r}.")
        return super().url(name)
