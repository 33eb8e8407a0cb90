"""Label values for paths and methods. There are few of them, so that clients cannot create more time series."""

PATHS = frozenset(
    {
        *("/", "/healthz", "/readyz", "/metrics"),
        *("/v2/payments", "/v2/payments/changes", "/v2/payments/imports", "/v2/payments/totals"),
    }
)
PREFIXES = ("/docs/", "/admin/", "/static/")
PAYMENT = "/v2/payments/"
OTHER = "other"

METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})


def route(path: str) -> str:
    if path in PATHS:
        return path
    if path.startswith(PAYMENT) and path.count("/") == PAYMENT.count("/"):
        return "/v2/payments/{payment_id}"
    return next((f"{prefix}..." for prefix in PREFIXES if path.startswith(prefix)), OTHER)


def method(name: str | None) -> str:
    return name if name in METHODS else OTHER
