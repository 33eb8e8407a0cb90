"""A crawl of the admin as a user of one organization, with the IDs of another one and with unknown IDs."""

import re
from collections.abc import Iterable, Iterator, Sequence
from html import unescape
from html.parser import HTMLParser
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.db import connection, reset_queries, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from payments.admin.grants import assign_organizations, assign_role
from payments.admin.scope import Scope
from payments.models import (
    ApiKey,
    ImportPart,
    ImportRun,
    ImportTimes,
    Organization,
    Payment,
    PaymentRead,
    Role,
    SavedFilter,
    StaffPreferences,
)
from tests.support.admin_site import PARAMETER, fill, url_patterns
from tests.support.factories import NOON, PaymentFactory

MARK = "Zqleak"  # in all texts of the foreign organization

# The values of each kind: own, foreign, unknown.
NUMBERS = (7100041, 7100042, 7100049)
IDS: dict[str, tuple[str, str, str]] = {
    "number": (str(NUMBERS[0]), str(NUMBERS[1]), str(NUMBERS[2])),
    "payment": ("pt_zqown1", "pt_zqfor1", "pt_zqnon1"),
    "customer": ("ct_zqown1", "ct_zqfor1", "ct_zqnon1"),
    "user": ("zqown", "zqfor", "zqnon"),
    "word": ("zqownword", "zqforword", "zqnonword"),
}
KINDS_OF_FIELDS = {
    **dict.fromkeys(("organization", "organizations", "before", "id", "run", "import"), ("number",)),
    **dict.fromkeys(("from", "payment", "term"), ("payment",)),
    **dict.fromkeys(("user", "username"), ("user",)),
    "q": ("payment", "customer", "word", "number", "user"),
}
OTHER_KINDS = ("number",)
EXTRA_FIELDS = ("organization", "from", "before", "payment", "user", "q", "next", "_changelist_filters", "page", "o")

FOREIGN_TIME = NOON.replace(year=1987)  # of the import
PAGE_ROWS = 60  # more than a page of the list has
FOREIGN = re.compile(
    rf"{MARK}|zqfor\w*|{NUMBERS[1]}|{NUMBERS[1]:,}(?!\.00)|{FOREIGN_TIME.year}"
)  # the search repeats an amount
OTHERS = re.compile("|".join([*(value for values in IDS.values() for value in values[1:]), "7,100,04[29]"]))
TRIES = 3

# The user names are unique for all organizations, so the name of a foreign user cannot be used again.
UNIQUE_FIELDS = {("auth/user/", "username"), ("organization/", "id")}

VARIABLE = re.compile(
    r'name="(csrfmiddlewaretoken|form_id)" value="[^"]*"|name="id" value="[0-9]{1,4}"|'
    r"<code>([0-9a-f]{32}|[\w-]{4})</code>|apikey/[0-9]{1,4}/|"
    r'(live|test)_[\w-]{20,}|[0-9]{2}:[0-9]{2}(:[0-9.]+)?|"(SAVEPOINT|RELEASE|ROLLBACK)[^"]*"'
)


def create_world() -> None:
    """Create the same objects for the own and for the foreign organization."""
    for number, payment_id, customer_id, name, word in zip(*[values[:2] for values in IDS.values()], strict=True):
        is_foreign = name == "zqfor"
        text = f"{MARK} {word}" if is_foreign else word
        organization = Organization.objects.create(id=int(number), name=text)
        values = {"organization": organization, "customer_id": customer_id, "description": text}
        named = PaymentFactory.build(id=payment_id, metadata=f'{{"order":"{word}"}}', **values)
        others = [*PaymentFactory.build_batch(PAGE_ROWS, **values), PaymentFactory.build(mode="test", **values)]
        Payment.objects.bulk_create([named, *others])
        ApiKey.objects.create(
            id=int(number), organization=organization, mode="live", name=text, digest=f"{number:0>64}"
        )
        user = User.objects.create_user(
            name, id=int(number), first_name=text, email=f"{name}@example.com", is_staff=True
        )
        assign_role(user, Role.VIEWER)
        assign_organizations(user, Scope(frozenset([organization.pk])))
        read = {"user_id": str(user.pk), "user_name": name, "kind": "list", "organization_id": number, "mode": "live"}
        times = {"read_at": NOON, "oldest_at": NOON, "newest_at": NOON}
        PaymentRead.objects.create(id=int(number), count=1, first_id=payment_id, last_id=payment_id, **read, **times)
        counts = dict.fromkeys(("read", "refused", "created", "changed", "unchanged"), int(number))
        run = ImportRun.objects.create(
            id=int(number),
            **counts,
            started_at=FOREIGN_TIME if is_foreign else NOON,
            source=text,
            actor=text,
            errors=[text],
        )
        ImportPart.objects.create(run=run, organization_id=number, mode="live")
        ImportTimes.objects.create(organization=organization, mode="live", api_at=run.started_at)
        shared = {"id": int(number), "organization_id": organization.pk}
        SavedFilter.objects.create(user=user, name=text, query="status=open", **shared)
        SavedFilter.objects.create(id=10 * int(number), user=user, name=f"{text} own", query="status=failed")
        entry = {"object_id": number, "object_repr": text, "action_flag": CHANGE, "change_message": text}
        for model in (ApiKey, Organization, User):
            LogEntry.objects.log_actions(
                user.pk, [model(pk=int(number))], CHANGE, change_message=entry["change_message"]
            )


def create_reader(role: Role) -> User:
    """Create the user who crawls. The remembered organization is the foreign one, which the user has lost."""
    user = User.objects.create_user("reader", is_staff=True)
    assign_role(user, role)
    assign_organizations(user, Scope(frozenset([NUMBERS[0]])))
    StaffPreferences.objects.create(user=user, organization_id=NUMBERS[1])
    return user


class Send(NamedTuple):
    """A request: a path, a query string, and for a POST a form."""

    path: str
    query: str = ""
    form: str | None = None


class Pair(NamedTuple):
    """The same request with the ID of the foreign organization, and with an unknown one."""

    foreign: Send
    unknown: Send
    kind: str


class Forms(HTMLParser):
    """Reads the forms of a page: the method, the action, and the fields with their values."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.forms: list[tuple[str, str, list[tuple[str, str]]]] = []
        self.select = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        name = values.get("name", "")
        if tag == "form":
            self.forms.append((values.get("method", "get").lower(), values.get("action", ""), []))
        elif tag == "select":
            self.select = name
        elif tag == "option" and self.forms and (not self.has(self.select) or "selected" in values):
            self.add(self.select, values.get("value", ""))
        elif tag in {"input", "textarea", "button"} and self.forms and is_sent(values):
            self.add(name, values.get("value", ""))

    def has(self, name: str) -> bool:
        return any(field == name for field, _ in self.forms[-1][2])

    def add(self, name: str, value: str) -> None:
        if name and name != "csrfmiddlewaretoken":
            self.forms[-1][2].append((name, value))


def is_sent(values: dict[str, str]) -> bool:
    """Return whether a browser sends the field. A new user gets the organizations of the editor."""
    is_choice = values.get("type") in {"checkbox", "radio"}
    return not is_choice or "checked" in values or values.get("name") == "organizations"


class Crawler:
    """Sends requests as a user, and compares what the user gets."""

    def __init__(self, user: User) -> None:
        self.client = Client(raise_request_exception=False)
        self.client.force_login(user)

    def send(self, request: Send) -> tuple[list[Any], str]:
        """Send a request, follow redirects and roll back. Return what can be compared, and the texts."""
        address = f"{request.path}?{request.query}"
        cookies: Any = self.client.cookies.copy()
        reset_queries()
        with CaptureQueriesContext(connection) as queries, transaction.atomic():
            if request.form is None:
                response: Any = self.client.get(address, follow=True)
            else:
                content_type = "application/x-www-form-urlencoded"
                response = self.client.post(address, request.form, content_type=content_type, follow=True)
            transaction.set_rollback(True)
        self.client.cookies = cookies
        statements = [query["sql"] for query in queries if "SAVEPOINT" not in query["sql"]]
        reads = [statement for statement in statements if statement.startswith("SELECT")]
        headers = {
            name: value for name, value in response.headers.items() if name not in {"X-Request-ID", "Content-Length"}
        }
        text = f"{response.content.decode()} {response.redirect_chain} {headers}"
        return [response.status_code, text, reads], text

    def faults(self, pair: Pair) -> list[str]:
        """Return foreign values in the response, and what differs from the response to an unknown ID.

        Sums of days are computed in steps that depend on the time, so a difference must show itself each time.
        """
        faults: list[str] = []
        for _ in range(TRIES):
            faults = self.differences(pair)
            if not faults:
                break
        return faults

    def differences(self, pair: Pair) -> list[str]:
        foreign = IDS[pair.kind][1]
        results = []
        for request in (pair.foreign, pair.unknown):
            comparable, text = self.send(request)
            if comparable[0] >= HTTPStatus.INTERNAL_SERVER_ERROR:
                return [f"status {comparable[0]}: {request}"]
            if leaks := set(FOREIGN.findall(text.replace(foreign, ""))):
                return [f"{sorted(leaks)}: {request}"]
            results.append(masked(str(comparable)))
        return [] if results[0] == results[1] else [f"{difference(*results)}: {pair.foreign}"]

    def pairs(self) -> Iterator[Pair]:
        """Yield requests to all URLs, with all fields that the pages name."""
        for path in ("/admin/", "/admin/report/"):  # so that the sums of days are stored
            for mode in ("live", "test"):
                self.client.get(path, {"mode": mode})
        for pattern in url_patterns():
            own_path = path_of(pattern, 0)
            forms, names = self.read(own_path)
            yield Pair(Send(own_path), Send(own_path), "number")
            yield from paths_pairs(pattern, forms)
            for kind, name in kinds(names):
                has_other = "organization" in names and name != "organization"
                start = f"organization={NUMBERS[0]}&{name}=" if has_other else f"{name}="
                yield pair_of(kind, lambda value, path=own_path, start=start: Send(path, start + quote(value)))
            for method, action, fields in forms:
                if method == "post":
                    yield from form_pairs(own_path, action, fields)
            if not PARAMETER.search(pattern):
                yield from form_pairs(own_path, "", [("name", "Till"), ("query", "status=open"), ("column", "status")])

    def read(self, path: str) -> tuple[list[Any], set[str]]:
        """Return the forms of a page, and the names of the fields in its forms and links; none of a refusal."""
        (status, *_), page = self.send(Send(path))
        if status != HTTPStatus.OK:
            return [], set()
        forms = Forms(page).forms
        links = re.findall(r'href="[^"?]*\?([^"#]*)', page)
        names = {name for _, _, fields in forms for name, _ in fields}
        return forms, {*names, *EXTRA_FIELDS, *(name for link in links for name in parse_qs(unescape(link)))}


def path_of(pattern: str, index: int, kind: str = "") -> str:
    """Return a path with the own (0), foreign (1) or unknown (2) ID of a kind."""
    kind = kind or ("payment" if pattern.startswith("payments/payment/") else "number")
    fixed = {"app_label": "payments", "suffix": "csv"}
    return fill(pattern, lambda name: fixed.get(name, quote(IDS[kind][index])))


def pair_of(kind: str, request: Any) -> Pair:
    return Pair(request(IDS[kind][1]), request(IDS[kind][2]), kind)


def paths_pairs(pattern: str, forms: Sequence[Any]) -> Iterator[Pair]:
    """Yield requests to a path with IDs of each kind, also with the fields of the own page's forms."""
    if not PARAMETER.search(pattern):
        return
    bodies = [None, "post=yes", *(urlencode(fields) for method, _, fields in forms if method == "post")]
    for kind in IDS:
        for body in bodies if kind in {"number", "payment"} else [None]:
            yield Pair(Send(path_of(pattern, 1, kind), "", body), Send(path_of(pattern, 2, kind), "", body), kind)


def form_pairs(own_path: str, action: str, fields: Sequence[tuple[str, str]]) -> Iterator[Pair]:
    """Yield a form with the value of each field replaced."""
    path = urlsplit(action).path or own_path
    for kind, name in kinds({name for name, _ in fields}):
        if any(part in path and name == field for part, field in UNIQUE_FIELDS):
            continue
        others = urlencode([field for field in fields if field[0] != name])
        yield pair_of(kind, lambda value, others=others, name=name: Send(path, "", f"{others}&{name}={quote(value)}"))
        if name == "query":
            yield pair_of(kind, lambda value, others=others: Send(path, "", f"{others}&query={nested(value)}"))


def nested(value: str) -> str:
    return quote(f"organization={value}&from={value}&q={value}&status=open")


def kinds(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the kinds of the values that are tried for each field."""
    for name in sorted(names):
        for kind in KINDS_OF_FIELDS.get(name, OTHER_KINDS):
            yield kind, name


def masked(text: str) -> str:
    """Return a response without the texts that differ each time, and with the same text for foreign and unknown IDs."""
    return OTHERS.sub("ID", VARIABLE.sub("", text))


def difference(first: str, second: str) -> str:
    """Return where two texts begin to differ."""
    at = next((at for at, (one, other) in enumerate(zip(first, second, strict=False)) if one != other), 0)
    return f"{first[at - 60 : at + 80]!r} is not {second[at - 60 : at + 80]!r}"
