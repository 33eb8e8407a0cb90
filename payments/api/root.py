"""Where everything begins: a person is led to the documentation, a program gets the links."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from payments.api.negotiation import prefers_html, qualities
from payments.api.renderers import HALRenderer
from payments.hal import HAL, HTML, Link
from payments.links import Addresses


@csrf_exempt  # there is nothing to forge, and another method is to be told so
@require_safe
@vary_on_headers("Accept")
def root(request: HttpRequest) -> HttpResponse:
    """Answer without a key, whatever is accepted: to whoever is just looking, a refusal would tell nothing."""
    if prefers_html(qualities(request.META)):
        return redirect("documentation")
    return HttpResponse(HALRenderer().render({"_links": links(Addresses.of(request))}), content_type=HAL)


def links(addresses: Addresses) -> dict[str, Link]:
    return {
        "self": Link(href=addresses.root, type=HAL),
        "payments": Link(href=addresses.list, type=HAL),
        "documentation": Link(href=addresses.documentation, type=HTML),
    }
