"""Hostile query strings for pages of the admin."""

# Values of parameters, of fields and of arguments in paths. They are encoded, some of them incorrectly.
VALUES = (
    *("", "%00", "a%00", "%25", "%25s", "%FF", "%ED%A0%80", "%0A", "%5B", "%5B0%5D", "%5C", "%22%27"),
    *("(", "(a%2B)%2B%24"),
    *("0", "1", "-1", "1.5", "1e400", "NaN", "%D9%A3", "9" * 30, "-" + "9" * 30, "9" * 5000, "a" * 10_000),
    *("'%20OR%201=1--", "{{7*7}}", "{%25%20load%20x%20%25}", "..%2F..%2F", "%3Cscript%3E", "a,b", "1,2", "a%20" * 900),
    *("9999-12-31", "0001-01-01", "0000-00-00", "True", "id", "live", "succeeded", "EUR", "pt_1", "ct_1", "custom"),
)

PARAMETERS = (
    *("o", "p", "q", "all", "e", "_facets", "_popup", "_to_field", "_changelist_filters", "next", "q%5B%5D", "%00"),
    *("organization", "mode", "status", "method", "currency", "since", "until", "from", "period"),
    *("term", "page", "app_label", "model_name", "field_name", "username", "groups", "expires_at"),
    *("mode__exact", "is_staff__exact", "groups__id__exact", "groups__isnull", "name__regex", "username__iregex"),
    *("name__icontains", "id__range", "id__in", "organization__name__contains", "keys__digest__startswith"),
    *("digest__startswith", "password__startswith", "payments__metadata__contains", "user__password__startswith"),
)

# Some are encoded incorrectly, or have thousands of words, columns or parameters.
REPEATED = ("is_staff__exact", "mode__exact", "groups__id__exact", "organization", "status")
QUERIES = (
    *("%", "&&==", "a=%&b=%2", "=", "o", "\xff=\xff", "%5B%5D=1"),
    *("q=" + "a+" * 3000, "q=%22" * 900, "o=" + "1." * 3000),
    *("&".join([f"{name}=1"] * 999) for name in REPEATED),
    *(f"{parameter}={value}" for parameter in PARAMETERS for value in VALUES),
)
