"""The list of imports, what the start page says about them, and which of them a user sees."""

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from payments.admin.base import PAGE_RECORDS
from payments.models import Access, ImportPart, ImportRun, ImportTimes, ImportWay, Organization, StaffOrganization
from tests.support.factories import NOON, OrganizationFactory, PaymentFactory

pytestmark = pytest.mark.also("citus")

LIST = "/admin/payments/importrun/"
HOUR = timedelta(hours=1)
TITLES = (
    "Import",
    "Time",
    "Organization",
    "Source",
    "By",
    "Read",
    "Written",
    "Unchanged",
    "Refused",
    "Duration",
    "Outcome",
)


@pytest.fixture(autouse=True)
def organizations(db: None) -> None:
    for number, name in ((1, "Books"), (2, "Bikes"), (3, "Tea")):
        OrganizationFactory.create(id=number, name=name)


def client_of(*organization_ids: int, codenames: tuple[str, ...] = ("view_importrun", "view_payment")) -> Client:
    """Return the client of a user of some organizations."""
    user = User.objects.create_user("clerk", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    for number in organization_ids:
        StaffOrganization.objects.create(user=user, organization_id=number)
    client = Client()
    client.force_login(user)
    return client


def create_run(written: dict[int, int], *, mode: str = "live", **values: Any) -> ImportRun:
    """Create an import that has written these numbers of payments of each organization."""
    ended_at = values.get("started_at", NOON) + timedelta(seconds=1.5)
    defaults = {"started_at": NOON, "ended_at": ended_at, "source": "a.jsonl", "actor": "shop", "outcome": "succeeded"}
    defaults |= {"created": sum(written.values()), "read": 100, "unchanged": 30, "refused": 7}
    run: ImportRun = ImportRun.objects.create(**{**defaults, **values})
    for organization_id, number in written.items():
        ImportPart.objects.create(run=run, organization_id=organization_id, mode=mode, written=number)
    return run


def text_of(html: str) -> str:
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))).strip()


def listed(page: Any) -> list[dict[str, str]]:
    """Return the rows of the list, each by the titles of its columns."""
    rows = re.findall(r"<tr>(.*?)</tr>", page.content.decode().partition("<tbody>")[2], re.DOTALL)
    cells = r'<td data-label="(\w+)"[^>]*>(.*?)</td>'
    return [{title: text_of(text) for title, text in re.findall(cells, row, re.DOTALL)} for row in rows]


def sources(page: Any) -> list[str]:
    return [row["Source"] for row in listed(page)]


def test_list_shows_an_import_in_the_time_of_its_organization(admin_client: Client) -> None:
    Organization.objects.filter(id=1).update(time_zone="Asia/Kathmandu")
    run = create_run({1: 1200})

    [row] = listed(admin_client.get(LIST))

    assert tuple(row) == TITLES
    assert row == {
        "Import": str(run.pk),
        "Time": "2026-01-01 17:45:00",
        "Organization": "Books",
        "Source": "a.jsonl",
        "By": "shop",
        "Read": "100",
        "Written": "1,200",
        "Unchanged": "30",
        "Refused": "7",
        "Duration": "1.5 s",
        "Outcome": "Succeeded",
    }


@pytest.mark.parametrize(
    ("written", "name", "time"),
    [({1: 1, 2: 1}, "2 organizations", "2026-01-01 12:00:00"), ({}, "Unknown", "2026-01-01 12:00:00")],
)
def test_import_of_several_or_no_organizations_is_in_utc(
    admin_client: Client, written: dict[int, int], name: str, time: str
) -> None:
    Organization.objects.update(time_zone="Asia/Kathmandu")
    create_run(written)

    [row] = listed(admin_client.get(LIST))

    assert (row["Organization"], row["Time"]) == (name, time)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.04, "0.0 s"), (59.9, "59.9 s"), (60, "1 min 0 s"), (4500.7, "75 min 0 s"), (None, "-")]
)
def test_duration_is_in_minutes_and_seconds(admin_client: Client, seconds: float | None, text: str) -> None:
    create_run({1: 1}, ended_at=None if seconds is None else NOON + timedelta(seconds=seconds))

    assert listed(admin_client.get(LIST))[0]["Duration"] == text


def test_failed_import_opens_its_first_lines(admin_client: Client) -> None:
    create_run({1: 0}, outcome="failed", errors=["a.jsonl:1: <b>: is missing", "a.jsonl:2: is no object"])

    page = admin_client.get(LIST).content.decode()

    [details] = re.findall(r"<details>.*?</details>", page)
    assert text_of(details).startswith("Failed ")
    assert re.findall(r"<li><bdi>(.*?)</bdi></li>", details) == [
        "a.jsonl:1: &lt;b&gt;: is missing",
        "a.jsonl:2: is no object",
    ]


def test_links_lead_through_all_imports_newest_first(admin_client: Client) -> None:
    for number in range(2 * PAGE_RECORDS + 1):
        create_run({}, source=f"{number}")

    pages = [admin_client.get(LIST)]
    while match := re.search(r'<a href="([^"]+)" rel="next">', pages[-1].content.decode()):
        pages.append(admin_client.get(LIST + match[1].replace("&amp;", "&")))

    assert [len(listed(page)) for page in pages] == [PAGE_RECORDS, PAGE_RECORDS, 1]
    assert [name for page in pages for name in sources(page)] == [
        str(number) for number in reversed(range(2 * PAGE_RECORDS + 1))
    ]


def test_list_is_filtered_by_organization(admin_client: Client) -> None:
    create_run({1: 1}, source="books")
    create_run({2: 1}, source="bikes")
    create_run({1: 1, 2: 1}, source="both")
    create_run({}, source="unknown")

    assert sources(admin_client.get(LIST)) == ["unknown", "both", "bikes", "books"]
    page = admin_client.get(LIST, {"organization": "1"})
    assert sources(page) == ["both", "books"]
    assert page.context["title"] == "Books · Imports"
    assert '<a href="/admin/payments/payment/?organization=1">' in page.content.decode()


def test_user_sees_only_imports_of_the_own_organizations() -> None:
    create_run({1: 1}, source="books")
    create_run({2: 1}, source="bikes")
    create_run({3: 1}, source="tea")
    create_run({404: 0}, source="missing")
    create_run({}, source="unknown")
    client = client_of(1, 2)

    assert sources(client.get(LIST)) == ["bikes", "books"]
    assert sources(client.get(LIST, {"organization": "2"})) == ["bikes"]


def test_user_without_organizations_sees_no_import() -> None:
    create_run({1: 1})
    create_run({})

    assert listed(client_of().get(LIST)) == []


def test_shared_import_shows_only_the_numbers_of_the_own_organizations() -> None:
    run = create_run({1: 5, 2: 6, 3: 800}, source="tea.jsonl", actor="tea", outcome="partial", errors=["tea.jsonl:1"])

    page = client_of(1, 2).get(LIST)

    assert listed(page) == [
        {
            "Import": str(run.pk),
            "Time": "2026-01-01 12:00:00",
            "Organization": "2 organizations",
            "Source": "Shared with other organizations",
            "Written": "11",
            "Unchanged": "-",
            "Refused": "-",
            "Duration": "-",
            "Outcome": "Some records refused",
        }
    ]
    assert not re.search(r"tea|811|800|\b100\b|1\.5 s", page.content.decode())


@pytest.mark.parametrize("text", ["3", "404", "9" * 30])
def test_foreign_and_unknown_organizations_get_equal_responses(text: str) -> None:
    create_run({3: 1})

    page = client_of(1).get(LIST, {"organization": text})

    assert page.status_code == 400
    assert "Select a valid choice" in page.content.decode()
    assert listed(page) == []


def test_list_needs_its_own_permission() -> None:
    client = client_of(1, codenames=("view_payment", "view_organization"))

    assert client.get(LIST).status_code == 403
    assert LIST not in client.get("/admin/").content.decode()
    assert LIST not in client.get("/admin/payments/organization/1/change/").content.decode()


def test_permission_gives_access_to_the_list() -> None:
    client = client_of(1, codenames=("view_importrun", "view_organization"))

    assert LIST in client.get("/admin/").content.decode()
    assert f"{LIST}?organization=1" in client.get("/admin/payments/organization/1/change/").content.decode()


@pytest.mark.parametrize("path", ["add/", "1/change/", "1/delete/", "1/history/"])
def test_imports_have_no_other_pages(admin_client: Client, path: str) -> None:
    create_run({1: 1}, id=1)

    assert admin_client.post(LIST + path, {"post": "yes"}).status_code == 404
    assert admin_client.post(LIST, {"action": "delete_selected", "_selected_action": "1"}).status_code == 403
    assert ImportRun.objects.exists()


def start_page(client: Client, **query: str) -> str:
    """Return the text of the start page, from its heading on."""
    page = client.get("/admin/", {"organization": "1", "mode": "live", **query})
    return text_of(page.content.decode().partition("</h1>")[2])


FAILED = "The import of 2026-01-01 12:00:00 failed and wrote nothing."


@pytest.mark.parametrize(
    ("runs", "is_shown"),
    [
        ([{}], False),
        ([{"outcome": "failed"}], True),
        ([{"outcome": "partial"}], False),
        ([{"outcome": "failed"}, {}], False),
        ([{"outcome": "failed"}, {"outcome": "partial"}], False),
        ([{"outcome": "failed"}, {"outcome": "failed"}], True),
        ([{"outcome": "failed"}, {"source": "b.jsonl"}], True),
        ([{"outcome": "failed"}, {"written": {2: 1}}], True),
        ([{"outcome": "failed"}, {"source": "b.jsonl", "started_at": NOON + 7 * 24 * HOUR}], True),
        ([{"outcome": "failed"}, {"source": "b.jsonl", "started_at": NOON + 7 * 24 * HOUR + HOUR}], False),
        ([{"outcome": "failed", "mode": "test"}], False),
        ([{"outcome": "failed", "written": {2: 0}}], False),
        ([{"outcome": "failed", "written": {2: 0, 9999: 0}}], False),
        ([{"outcome": "failed"}, {"outcome": "running", "written": {}}], True),
    ],
)
def test_failed_import_is_named_until_its_source_succeeds(runs: list[dict[str, Any]], *, is_shown: bool) -> None:
    for values in runs:
        create_run(**{"written": {1: 0}, **values})

    page = start_page(client_of(1))

    assert (FAILED in page) == is_shown
    assert ("Needs a look" in page) == is_shown
    assert ("See the import" in page) == is_shown


def test_link_to_a_failed_import_needs_the_permission() -> None:
    create_run({1: 0}, outcome="failed")

    page = start_page(client_of(1, codenames=("view_payment",)))

    assert FAILED in page
    assert "See the import" not in page


def test_link_leads_to_the_failed_import(admin_client: Client) -> None:
    create_run({1: 0}, outcome="failed", source="failed")
    create_run({2: 0})

    page = admin_client.get("/admin/", {"organization": "1", "mode": "live"}).content.decode()
    [query] = re.findall(r'<a href="[^"?]+importrun/([^"]+)">See the import', page)

    assert sources(admin_client.get(LIST + query)) == ["failed"]


@pytest.mark.parametrize("written", [{}, {9999: 0}])
def test_failed_import_of_no_known_organization_is_named_to_users_of_all(
    admin_client: Client, written: dict[int, int]
) -> None:
    create_run({1: 1})
    create_run(written, outcome="failed")
    client = client_of(1)

    assert FAILED in start_page(admin_client)
    assert "failed" not in start_page(client)

    create_run({1: 1})

    assert FAILED not in start_page(admin_client)


def record_hours_ago(*numbers: int, organization_id: int = 1, way: ImportWay = ImportWay.COMMAND) -> None:
    """Record successful imports so many hours ago."""
    for hours in numbers:
        started_at = timezone.now() - hours * HOUR
        ImportTimes.objects.record([Access(organization_id, "live")], way=way, started_at=started_at)


@pytest.mark.parametrize(
    ("hours", "is_late"), [((97, 73, 49), False), ((121, 97, 73, 49), True), ((120, 96, 72, 47), False)]
)
def test_start_page_says_that_the_next_import_is_late(hours: tuple[int, ...], is_late: bool) -> None:
    record_hours_ago(*hours)
    record_hours_ago(121, 97, 73, 49, organization_id=2)

    page = start_page(client_of(1))

    text = "In the 14 days before, the longest time between two imports was 1 day."
    assert ("No successful import since" in page, text in page) == (is_late, is_late)


def test_start_page_shows_the_last_import_of_each_way_and_a_failed_one() -> None:
    Organization.objects.filter(id=1).update(time_zone="Asia/Kathmandu")
    PaymentFactory.create(organization_id=1, created_at=timezone.now())
    client = client_of(1)
    assert "Last import" not in start_page(client)

    for number, way in enumerate(ImportWay):
        ImportTimes.objects.record([Access(1, "live")], way=way, started_at=NOON + number * HOUR)
    page = start_page(client)

    assert "Last import by command: 2026-01-01 17:45:00 . Last import over the API: 2026-01-01 18:45:00 ." in page
    assert "(failed)" not in page

    create_run({1: 0}, outcome="failed")

    assert "Last import: 2026-01-01 17:45:00 (failed)." in start_page(client)


def test_list_shows_which_imports_came_over_the_api(admin_client: Client) -> None:
    create_run({1: 1}, actor="Till", way=ImportWay.API)
    create_run({1: 1}, actor="shop")

    assert [row["By"] for row in listed(admin_client.get(LIST))] == ["shop", "Till (API)"]
