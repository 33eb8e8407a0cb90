"""Who may see anything at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.permissions import BasePermission

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.views import APIView


class HasKey(BasePermission):
    """Holders of a key; OPTIONS, which browsers send without one, tells nothing of any payment."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        return request.method == "OPTIONS" or request.auth is not None
