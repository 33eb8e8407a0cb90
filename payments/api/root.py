"""The entry point `/`: links for programs, the documentation for browsers."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from payments.api.links import Links
from payments.api.renderers import HALRenderer, parse_accept, prefers_html
from payments.hal import HAL, HTML, Link


@csrf_exempt  # so that POST gets 405, not a CSRF error
@require_safe
@vary_on_headers("Accept")
def root(request: HttpRequest) -> HttpResponse:
    """Return the links of the API. Neither a key nor an acceptable media type is required.

    It does not redirect to the list: clients drop the Authorization header on a redirect.
    """
    if prefers_html(parse_accept(request.META.get("HTTP_ACCEPT", ""))):
        return redirect("payments:documentation")
    links = Links.of(request)
    root_links = {
        "self": Link(href=links.url("root"), type=HAL),
        "payments": Link(href=links.list, type=HAL),
        "changes": Link(href=links.changes, type=HAL),
        "documentation": Link(href=links.documentation, type=HTML),
    }
    return HttpResponse(HALRenderer().render({"_links": root_links}), content_type=HAL)
