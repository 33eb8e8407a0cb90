"""An OpenID provider in its own process, and a visitor who signs in there."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import requests

from tests.support.ports import free_port
from tests.support.processes import STOP_SECONDS_MAX, wait_until_listening
from tests.support.service import Service

SECONDS_MAX = 30


@dataclass
class Provider:
    """A provider with accounts. It accepts every client."""

    port: int

    @property
    def issuer(self) -> str:
        return f"http://localhost:{self.port}"

    def settings(self, **changes: str) -> dict[str, str]:
        """Return the settings of a service that uses the provider."""
        return {
            "OIDC_ISSUER": self.issuer,
            "OIDC_CLIENT_ID": "payments",
            "OIDC_CLIENT_SECRET": "client-secret-of-the-tests",
            "OIDC_NAME": "Bakery",
            "OIDC_EMAIL_DOMAINS": "example.com,example.org",
            **changes,
        }

    def set_account(self, subject: str, **claims: Any) -> None:
        """Create or replace an account with a verified address."""
        values = {"email": f"{subject}@example.com", "email_verified": True, **claims}
        requests.put(f"{self.issuer}/users/{subject}", json=values, timeout=SECONDS_MAX).raise_for_status()


@contextmanager
def provider() -> Iterator[Provider]:
    """Run a provider until the block ends."""
    port = free_port()
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_until_listening(server, port, workers=1)
            yield Provider(port)
        finally:
            server.terminate()
            server.wait(timeout=STOP_SECONDS_MAX)


@dataclass
class Visitor:
    """A browser without scripts."""

    service: Service
    session: requests.Session = field(default_factory=requests.Session)

    def get(self, path: str, **options: Any) -> requests.Response:
        return self.session.get(f"{self.service.base_url}{path}", timeout=SECONDS_MAX, **options)

    def submit(self, path: str, **fields: str) -> requests.Response:
        """Open a page and submit its form."""
        token = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', self.get(path).text)[0]
        return self.post(path, csrfmiddlewaretoken=token, **fields)

    def post(self, path: str, **fields: str) -> requests.Response:
        headers = {"Origin": self.service.base_url}
        return self.session.post(f"{self.service.base_url}{path}", fields, headers=headers, timeout=SECONDS_MAX)

    def log_in(self, name: str, password: str, *, next_path: str = "/admin/") -> requests.Response:
        return self.submit("/admin/login/", username=name, password=password, next=next_path)

    def sign_in(self, subject: str, **query: str) -> requests.Response:
        """Sign in at the provider, and return the page that follows."""
        form = self.get(f"/admin/sign-in/?{urlencode(query)}")
        assert "/oauth2/authorize" in form.url, form.text
        return self.session.post(form.url, {"sub": subject}, timeout=SECONDS_MAX)

    def user_name(self) -> str | None:
        """Return the name of the user of the session; None if there is none."""
        match = re.search(r'<div id="user-tools">\s*<strong>([^<]+)</strong>', self.get("/admin/").text)
        return match[1] if match else None
