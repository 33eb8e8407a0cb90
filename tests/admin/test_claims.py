"""The address of an account is used only if neither the ID token nor the user info contradicts it."""

from typing import Any

import pytest

from payments.admin.sign_in.claims import used_claims

pytestmark = pytest.mark.once

ADDRESS = {"email": "ann@example.com"}
VERIFIED = {"email_verified": True}
DENIED = {"email_verified": False}


@pytest.mark.parametrize(
    ("id_token", "userinfo"),
    [
        ({}, ADDRESS | VERIFIED),
        (ADDRESS | VERIFIED, {}),
        (ADDRESS, ADDRESS | VERIFIED),
        ({"email": "Ann@Example.com"} | VERIFIED, ADDRESS | VERIFIED),
    ],
)
def test_verified_address_is_used(id_token: dict[str, Any], userinfo: dict[str, Any]) -> None:
    assert used_claims(id_token, userinfo)["email"] == "ann@example.com"


@pytest.mark.parametrize(
    ("id_token", "userinfo"),
    [
        (ADDRESS, ADDRESS),
        (ADDRESS | DENIED, ADDRESS | VERIFIED),
        (ADDRESS | VERIFIED, DENIED),
        (VERIFIED, ADDRESS),
        (ADDRESS, VERIFIED),
        ({"email": "bob@example.com"} | VERIFIED, ADDRESS | VERIFIED),
        ({"email": None}, ADDRESS | VERIFIED),
    ],
)
def test_address_that_one_document_contradicts_is_not_used(id_token: dict[str, Any], userinfo: dict[str, Any]) -> None:
    assert used_claims(id_token, userinfo)["email"] == ""
