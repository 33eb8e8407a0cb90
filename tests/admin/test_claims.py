"""Claims of an account: an address that no document contradicts, the role and the organizations."""

from typing import Any

import pytest

from payments.admin.scope import EVERYTHING, Scope
from payments.admin.sign_in.access import claimed_access
from payments.admin.sign_in.claims import Refused, used_claims
from payments.models import Role

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


@pytest.fixture
def access_claims(settings: Any) -> None:
    settings.PAYMENTS_OIDC_ROLE_CLAIM, settings.PAYMENTS_OIDC_ORGANIZATIONS_CLAIM = "role", "shops"


@pytest.mark.usefixtures("access_claims")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("", None),
        ([], None),
        ("viewer", Role.VIEWER),
        (["key-manager"], Role.KEY_MANAGER),
        (["administrator", "viewer"], Role.ADMINISTRATOR),
    ],
)
def test_highest_role_of_the_claim_counts(value: Any, expected: Role | None) -> None:
    assert claimed_access(used_claims({}, {"role": value})).role == expected


@pytest.mark.usefixtures("access_claims")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, Scope(frozenset())),
        ("all", EVERYTHING),
        (["7", "all"], EVERYTHING),
        (7, Scope(frozenset([7]))),
        (["7", 8], Scope(frozenset([7, 8]))),
        ("9" * 18, Scope(frozenset([10**18 - 1]))),
    ],
)
def test_organizations_of_the_claim_are_ids_or_all(value: Any, expected: Scope) -> None:
    assert claimed_access(used_claims({"shops": value}, {})).scope == expected


@pytest.mark.usefixtures("access_claims")
@pytest.mark.parametrize(
    "claims",
    [
        *({"role": value} for value in ("owner", "Viewer", ["viewer", "owner"], 7, True, {"a": 1}, [["viewer"]])),
        *({"role": value} for value in ("viewer\n", "vi\0ewer", "\ud800", "x" * 10_000)),
        *({"shops": value} for value in ("x", "-7", "07", "0", "7.0", 7.0, True, [7, "x"], {"7": 1}, "7,8")),
        *({"shops": value} for value in ("9" * 19, 10**400, "\u0667", "ALL", [[7]])),
    ],
    ids=lambda claims: ascii(claims)[:40],
)
def test_unknown_role_and_invalid_organization_are_refused(claims: dict[str, Any]) -> None:
    with pytest.raises(Refused, match=r"^Your account has an? (role|organization) that is "):
        claimed_access(used_claims({}, claims))


def test_claims_without_a_setting_change_nothing() -> None:
    access = claimed_access(used_claims({}, {"role": "administrator", "": "administrator", "shops": "all"}))

    assert access == (None, None)
