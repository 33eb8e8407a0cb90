"""One-time IDs of forms: if the same form is sent twice, the database refuses the second row with its ID.

The ID is in a hidden field, signed for the user who opened the form. So workers and machines need no shared state, and
a user cannot use up the form of another user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from django.core import signing

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User

SALT = "payments.admin.form_ids"


class InvalidFormId(Exception):
    """The text is not an ID that was signed for this user."""


def new_form_id(user: User | AnonymousUser) -> str:
    """Return a new ID, signed for a user."""
    return signer(user).sign(uuid4().hex)


def read_form_id(text: str, *, user: User | AnonymousUser) -> UUID:
    """Return the ID in a text that `new_form_id` returned for the same user.

    :raises InvalidFormId: for any other text
    """
    try:
        return UUID(signer(user).unsign(text))
    except signing.BadSignature:
        raise InvalidFormId from None


def signer(user: User | AnonymousUser) -> signing.Signer:
    return signing.Signer(salt=f"{SALT}:{user.pk}")
