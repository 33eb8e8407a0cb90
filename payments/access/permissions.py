"""The permission of the API: a valid API key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.permissions import BasePermission

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.views import APIView


class HasKey(BasePermission):
    """Requires a key, except for OPTIONS. Browsers send OPTIONS without a key, and the response contains no data."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        return request.method == "OPTIONS" or request.auth is not None
