"""Renders documents as HAL and errors as problem+json."""

from collections.abc import Mapping
from typing import Any

import msgspec
from rest_framework.renderers import BaseRenderer

from payments.hal import HAL


class HALRenderer(BaseRenderer):
    """Compact UTF-8 JSON; indented for the browsable API."""

    media_type = HAL
    format = "hal"
    charset = None

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        text = msgspec.json.encode(data)
        if indent := (renderer_context or {}).get("indent"):
            return msgspec.json.format(text, indent=indent)
        return text


class ProblemRenderer(HALRenderer):
    """Renders errors as compact JSON (RFC 9457)."""

    media_type = "application/problem+json"
    format = "problem"
