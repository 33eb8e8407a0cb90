"""Times in the admin name their time zone."""

import re
from datetime import timedelta

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.test import Client

from payments.models import ApiKey
from tests.support.factories import NOON, ApiKeyFactory

KEYS = "/admin/payments/apikey/"
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: UTC)?")


@pytest.fixture
def key(admin_user: User) -> ApiKey:
    key: ApiKey = ApiKeyFactory.create(last_used_at=NOON + timedelta(hours=1), revoked_at=NOON + timedelta(hours=3))
    ApiKey.objects.update(created_at=NOON, expires_at=NOON + timedelta(hours=2))
    entry = {"object_id": str(key.pk), "action_flag": CHANGE, "change_message": "Revoked.", "user": admin_user}
    LogEntry.objects.create(content_type=ContentType.objects.get_for_model(ApiKey), action_time=NOON, **entry)
    return key


def test_times_of_keys_name_utc(admin_client: Client, key: ApiKey) -> None:
    key_list, page, history = (
        admin_client.get(f"{KEYS}{path}").content.decode() for path in ("", f"{key.pk}/change/", f"{key.pk}/history/")
    )

    times = [f"2026-01-01 {hour}:00:00 UTC" for hour in (12, 13, 14, 15)]
    assert sorted(TIME.findall(key_list)) == times[:3]
    assert TIME.findall(page) == times
    assert TIME.findall(history) == times[:1]
