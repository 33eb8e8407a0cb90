"""Times in the admin are those of the organization, with UTC as a tooltip. Other times name UTC."""

import re
from datetime import timedelta

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.test import Client

from payments.models import ApiKey
from tests.support.factories import NOON, ApiKeyFactory, OrganizationFactory

KEYS = "/admin/payments/apikey/"
TIME = re.compile(r'title="2026-01-01 (\d\d):00:00 UTC">2026-01-01 (\d\d):00:00</time>')
UTC_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")


@pytest.fixture
def key(admin_user: User) -> ApiKey:
    organization = OrganizationFactory.create(time_zone="Europe/Amsterdam")
    times = {"last_used_at": NOON + timedelta(hours=1), "revoked_at": NOON + timedelta(hours=3)}
    key: ApiKey = ApiKeyFactory.create(organization=organization, **times)
    ApiKey.objects.update(created_at=NOON, expires_at=NOON + timedelta(hours=2))
    entry = {"object_id": str(key.pk), "action_flag": CHANGE, "change_message": "Revoked.", "user": admin_user}
    LogEntry.objects.create(content_type=ContentType.objects.get_for_model(ApiKey), action_time=NOON, **entry)
    return key


def test_times_of_keys_are_those_of_the_organization(admin_client: Client, key: ApiKey) -> None:
    key_list, page, history = (
        admin_client.get(f"{KEYS}{path}").content.decode() for path in ("", f"{key.pk}/change/", f"{key.pk}/history/")
    )

    times = [("12", "13"), ("13", "14"), ("14", "15"), ("15", "16")]  # UTC and Amsterdam
    assert sorted(TIME.findall(key_list)) == times[:3]
    assert TIME.findall(page) == times
    assert UTC_TIME.findall(history) == ["2026-01-01 12:00:00 UTC"]
