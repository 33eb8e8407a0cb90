"""The admin site: its URLs, and the footer of its pages."""

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from payments import __version__
from payments.models import Payment
from tests.support.factories import PaymentFactory


@pytest.mark.parametrize("payment_id", ["pt_1", "pt_2", "%00"])
def test_site_does_not_redirect_to_objects_of_any_model(admin_client: Client, payment_id: str) -> None:
    PaymentFactory.create(id="pt_1")
    content_type = ContentType.objects.get_for_model(Payment)

    with CaptureQueriesContext(connection) as queries:
        response = admin_client.get(f"/admin/r/{content_type.pk}/{payment_id}/")

    assert response.status_code == 404
    assert "payments_payment" not in str(queries.captured_queries)


@pytest.mark.parametrize(
    "query",
    [
        "app_label=payments&model_name=organization&field_name=keys&term=x",
        "app_label=payments&model_name=apikey&field_name=organization&term=%00",
    ],
)
def test_site_does_not_complete_searches(admin_client: Client, query: str) -> None:
    assert admin_client.get(f"/admin/autocomplete/?{query}").status_code == 404


def test_footer_shows_the_release_to_staff_only(admin_client: Client, client: Client) -> None:
    release = f"payments-site {__version__}"

    assert release in admin_client.get("/admin/").content.decode()
    assert release not in client.get("/admin/login/").content.decode()
