"""The names that requests are counted under: few, whatever clients ask for."""

PATHS = frozenset({"/", "/v2/payments", "/healthz", "/readyz", "/metrics"})
BELOW = ("/docs/", "/admin/", "/static/")
PAYMENT = "/v2/payments/"
OTHER = "other"

METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})


def route(path: str) -> str:
    """Return the name of a path; where it has none, `other`."""
    if path in PATHS:
        return path
    if path.startswith(PAYMENT) and path.count("/") == PAYMENT.count("/"):
        return "/v2/payments/{payment_id}"
    return next((f"{start}..." for start in BELOW if path.startswith(start)), OTHER)


def method(name: str | None) -> str:
    """Return a method's name; where it is none that anybody knows, `other`."""
    return name if name in METHODS else OTHER
