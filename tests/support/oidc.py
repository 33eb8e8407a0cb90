"""An OpenID provider in its own process, whose responses a test can change, and a visitor who signs in there."""

import base64
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

import requests

from tests.support.ports import free_port
from tests.support.processes import wait_until_listening
from tests.support.relay import Answer, relayed
from tests.support.service import Service
from tests.support.waiting import SECONDS_MAX

CONFIGURATION, TOKEN, USER_INFO = "/.well-known/openid-configuration", "/oauth2/token", "/userinfo"


@dataclass
class Provider:
    """A provider with accounts. It accepts every client. Its responses are correct unless a test changes them."""

    port: int
    changes: dict[str, Callable[[Answer], Answer]] = field(default_factory=dict)  # by path

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

    def set_members(self, path: str, **members: Any) -> None:
        """Change members of the objects at a path."""
        self.changes[path] = lambda answer: answer._replace(
            body=json.dumps({**json.loads(answer.body), **members}).encode()
        )

    def set_id_token(self, *, header: dict[str, Any] | None = None, without: str = "", **claims: Any) -> None:
        """Change the claims of ID tokens, or remove one."""

        def change(answer: Answer) -> Answer:
            document = json.loads(answer.body)
            parts = [json.loads(decode(part)) for part in document["id_token"].split(".")[:2]]
            payload = {name: value for name, value in {**parts[1], **claims}.items() if name != without}
            document["id_token"] = ".".join([encode({**parts[0], **(header or {})}), encode(payload), "c2ln"])
            return answer._replace(body=json.dumps(document).encode())

        self.changes[TOKEN] = change

    def changed(self, path: str, answer: Answer) -> Answer:
        return self.changes[path](answer) if path in self.changes else answer


def decode(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "==")


def encode(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@contextmanager
def provider() -> Iterator[Provider]:
    """Run a provider until the block ends."""
    port = free_port()
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_until_listening(server, port, workers=1)
            running = Provider(0)
            with relayed(port, change=running.changed) as url:
                running.port = urlsplit(url).port or 0
                yield running
        finally:
            server.terminate()
            server.wait(timeout=SECONDS_MAX)


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
        match = re.search(r'id="user-tools">\s*<details[^>]*>\s*<summary>([^<]+)<', self.get("/admin/").text)
        return match[1] if match else None
