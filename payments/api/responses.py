"""An answer's body: at once where it is HAL."""

from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from payments.api.renderers import HALRenderer


def answered(request: Request, document: Any) -> HttpResponse:
    """Return the answer that shows a document.

    DRF's own kind waits until somebody may have changed it, and brings for that what a template needs. HAL is bytes.
    """
    renderer = request.accepted_renderer
    if isinstance(renderer, HALRenderer):
        return HttpResponse(renderer.render(document), content_type=renderer.media_type)
    return Response(document)
