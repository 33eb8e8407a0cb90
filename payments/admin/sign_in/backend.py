"""The authentication backend of sessions that began at the OpenID provider."""

from typing import Any

from django.contrib.auth.backends import ModelBackend


class SingleSignOnBackend(ModelBackend):
    """Finds the user of a session and their permissions. It accepts no passwords."""

    def authenticate(self, request: Any, username: Any = None, password: Any = None, **credentials: Any) -> None:
        return None
