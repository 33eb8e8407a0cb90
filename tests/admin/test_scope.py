"""A user of one organization gets no value of another one, and cannot find out which IDs exist."""

import ast
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from payments.admin import accounts, grants
from payments.admin.scope import EVERYTHING, Scope
from payments.models import Role
from tests.admin.crawl import Crawler, Pair, Send, create_reader, create_world, pair_of
from tests.support.admin_site import PAYMENT_PAGES, READS_PAGE
from tests.support.processes import ROOT
from tests.support.scale import report

pytestmark = pytest.mark.django_db

ADMIN = ROOT / "payments/admin"
USES = {"of", "organizations", "limit", "payments", "imports", "manageable_users"}

# Without its limit, each of these functions still responds the same: another one has limited its values before.
ALSO_LIMITED_ELSEWHERE = {
    "forms.default_organization": "returns an organization that the form validates",
    "forms.initial_access": "preselects one of the organizations that the form offers",
    "imports.import_rows": "reads the names of organizations that it has limited before",
    "reads.PaymentReadAdmin.get_rows": "reads the names of organizations that it has limited before",
    "site.PaymentsAdminSite.each_context": "finds out whether the user sees no organization",
    "views.PaymentAdmin.change_view": "reads the organization of a payment that the user sees",
    "views.failed_import": "reads the imports of an organization that the form has validated",
}

# They select nothing, or only objects of a queryset that the scope limits.
HARMLESS = {
    "Organization.objects.none",
    "ApiKey.objects.issue",
    "ApiKey.objects.active",
    "ImportPart.objects.of",
    "ImportTimes.objects.of",
    "Payment.objects.visible_to",
}

# It counts the parts of imports that the scope has limited, also parts of other organizations.
IMPORTS = {"imports"}

# A crawl takes a minute or longer, so on PostgreSQL there is one, and in a long run all.
ROLES = [pytest.param(role, marks=[pytest.mark.once] if role != Role.VIEWER else []) for role in Role]

# These modules read users before there is one whose scope could limit them.
SIGN_IN = {"claims", "adapters", "second_factor"}
MANAGERS = {
    "Payment",
    "Organization",
    "ApiKey",
    "PaymentRead",
    "ImportRun",
    "ImportPart",
    "ImportTimes",
    "StatusChange",
    "User",
    "Group",
}


@pytest.fixture
def world(db: None) -> None:
    create_world()


def test_foreign_and_unknown_ids_get_the_same_response(world: None) -> None:
    """They also run the same statements, so the time tells nothing."""
    crawler = Crawler(create_reader(Role.ADMINISTRATOR))
    requests = [
        *(
            ("payment", f"{PAYMENT_PAGES}{path}")
            for path in ("{0}/change/", "?q={0}", "?from={0}", "export.csv?from={0}")
        ),
        *(("number", f"{PAYMENT_PAGES}{path}") for path in ("?organization={0}", "pt_zqown1/change/?organization={0}")),
        ("number", "/admin/payments/apikey/{0}/revoke/"),
        ("number", "/admin/auth/user/{0}/password/"),
        ("payment", f"{READS_PAGE}?payment={{0}}"),
    ]
    pairs = [pair_of(kind, lambda value, path=path: Send(*path.format(value).split("?"))) for kind, path in requests]

    assert [fault for pair in pairs for fault in crawler.faults(pair)] == []


@pytest.mark.extended
@pytest.mark.parametrize("role", ROLES)
def test_crawl_finds_no_foreign_value(world: None, role: Role) -> None:
    crawler = Crawler(create_reader(role))
    pairs = list(crawler.pairs())

    faults = [fault for pair in pairs for fault in crawler.faults(pair)]

    report(f"{role}: {2 * len(pairs)} requests")
    assert faults == []


class Uses:
    """Records which functions use the scope, and removes the limit in one of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: set[str] = set()
        self.unlimited = ""
        of, limit, manageable = Scope.of, Scope.limit, grants.manageable_users
        monkeypatch.setattr(Scope, "of", lambda user: EVERYTHING if self.is_unlimited() else of(user))
        monkeypatch.setattr(
            Scope, "limit", lambda scope, *objects, **field: limit(self.scope(scope), *objects, **field)
        )
        for name in ("organizations", "payments", "imports"):
            monkeypatch.setattr(Scope, name, self.unlimited_property(vars(Scope)[name].fget))
        everybody = User.objects.order_by("username")
        monkeypatch.setattr(
            accounts, "manageable_users", lambda user: everybody.all() if self.is_unlimited() else manageable(user)
        )

    def unlimited_property(self, read: Callable[[Scope], Any]) -> property:
        return property(lambda scope: read(self.scope(scope)))

    def scope(self, scope: Scope) -> Scope:
        return EVERYTHING if self.is_unlimited(depth=3) else scope

    def is_unlimited(self, *, depth: int = 2) -> bool:
        """Return whether the function that uses the scope is the one without a limit."""
        code = sys._getframe(depth).f_code  # noqa: SLF001
        name = f"{Path(code.co_filename).stem}.{code.co_qualname.partition('.<locals>')[0]}"
        self.seen.add(name)
        return name == self.unlimited


def functions_with(tree: ast.AST, names: set[str], prefix: str) -> Iterator[str]:
    """Yield the functions that contain one of these names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from functions_with(node, names, f"{prefix}.{node.name}")
        elif isinstance(node, ast.FunctionDef) and any(is_use(part) for part in ast.walk(node)):
            yield f"{prefix}.{node.name}"


def is_use(node: ast.AST) -> bool:
    """Return whether a node is `Scope.of`, a member of a scope, or a call of `manageable_users`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in USES
    owner = ast.unparse(node.value).lower() if isinstance(node, ast.Attribute) else ""
    return isinstance(node, ast.Attribute) and node.attr in USES and ("scope" in owner or owner == "self")


def expected_uses() -> set[str]:
    paths = [path for path in ADMIN.rglob("*.py") if path.parent.name != "sign_in"]
    return {name for path in paths for name in functions_with(ast.parse(path.read_text()), USES, path.stem)}


@pytest.mark.extended
@pytest.mark.once
def test_crawl_finds_each_query_that_forgets_the_scope(world: None, monkeypatch: pytest.MonkeyPatch) -> None:
    uses, pairs_of = Uses(monkeypatch), defaultdict(list)
    crawler = Crawler(create_reader(Role.ADMINISTRATOR))
    pairs: list[Pair] = list(crawler.pairs())
    for pair in pairs:
        uses.seen.clear()
        crawler.send(pair.foreign)
        for name in uses.seen:
            pairs_of[name].append(pair)

    survivors = set()
    for name in sorted(pairs_of.keys() - ALSO_LIMITED_ELSEWHERE.keys()):
        uses.unlimited = name
        if not any(crawler.faults(pair) for pair in pairs_of[name]):
            survivors.add(name)
    report(f"{len(pairs_of)} functions use the scope")

    assert expected_uses() - pairs_of.keys() == {"scope.Scope.existing"}  # only the sign-in calls it
    assert survivors == set()


def test_admin_reads_organizations_only_through_the_scope() -> None:
    """Payments are read through `visible_to`, and keys and users through the scope."""
    found = []
    for path in ADMIN.rglob("*.py"):
        if path.stem in {"scope", "grants"} | SIGN_IN | IMPORTS:
            continue
        nodes = list(ast.walk(ast.parse(path.read_text())))
        limited = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".limit")]
        inside = {part for node in limited for part in ast.walk(node)}
        for node in set(nodes) - inside:
            text = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
            is_manager = ".objects." in text and text.partition(".")[0] in MANAGERS
            if is_manager and not text.startswith(tuple(HARMLESS)):
                found.append(f"{path.stem}: {text}")

    assert found == []
