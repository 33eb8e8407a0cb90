"""Django REST framework as its documentation describes it: ModelSerializer, CursorPagination, JSONRenderer."""

import hashlib
import os
from typing import Any

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from psycopg.conninfo import conninfo_to_dict

database = conninfo_to_dict(os.environ["DATABASE_URL"])
settings.configure(
    SECRET_KEY=os.environ["SECRET_KEY"],
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=["rest_framework"],
    MIDDLEWARE=["django.middleware.security.SecurityMiddleware", "django.middleware.common.CommonMiddleware"],
    TIME_ZONE="UTC",
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": database["dbname"],
            "USER": database.get("user", ""),
            "HOST": database["host"],
            "CONN_MAX_AGE": None,
        }
    },
    REST_FRAMEWORK={
        "DEFAULT_AUTHENTICATION_CLASSES": [],
        "DEFAULT_PERMISSION_CLASSES": [],
        "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
        "UNAUTHENTICATED_USER": None,
    },
)
application = get_wsgi_application()

from django.db import models  # noqa: E402
from django.db.models import Q  # noqa: E402
from django.urls import path  # noqa: E402
from django.utils import timezone  # noqa: E402
from rest_framework import serializers  # noqa: E402
from rest_framework.authentication import BaseAuthentication, get_authorization_header  # noqa: E402
from rest_framework.exceptions import AuthenticationFailed  # noqa: E402
from rest_framework.generics import ListAPIView  # noqa: E402
from rest_framework.pagination import CursorPagination  # noqa: E402
from rest_framework.request import Request  # noqa: E402


class ApiKey(models.Model):  # noqa: DJ008
    """An API key."""

    organization_id = models.BigIntegerField()
    mode = models.CharField(max_length=4)
    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        app_label = "stock_drf"
        managed = False
        db_table = "payments_apikey"


class Payment(models.Model):  # noqa: DJ008
    """A payment."""

    id = models.CharField(primary_key=True, max_length=64)
    organization_id = models.BigIntegerField()
    mode = models.CharField(max_length=4)
    amount = models.DecimalField(max_digits=15, decimal_places=2)
    amount_currency = models.CharField(max_length=3)
    amount_net = models.DecimalField(max_digits=15, decimal_places=2, null=True)
    amount_net_currency = models.CharField(max_length=3, null=True)  # noqa: DJ001  as in the table
    amount_remaining = models.DecimalField(max_digits=15, decimal_places=2, null=True)
    amount_remaining_currency = models.CharField(max_length=3, null=True)  # noqa: DJ001
    description = models.TextField(blank=True)
    method = models.CharField(max_length=32, blank=True)
    redirect_url = models.TextField(blank=True)
    webhook_url = models.TextField(blank=True)
    status = models.CharField(max_length=10)
    sequence_type = models.CharField(max_length=9)
    metadata = models.JSONField()
    details = models.JSONField(null=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    paid_at = models.DateTimeField(null=True)
    customer_id = models.CharField(max_length=64, blank=True)

    class Meta:
        app_label = "stock_drf"
        managed = False
        db_table = "payments_payment"


class KeyAuthentication(BaseAuthentication):
    """Puts the key on `request.auth`."""

    def authenticate(self, request: Request) -> tuple[Any, ApiKey]:
        _, _, key = get_authorization_header(request).partition(b" ")
        usable = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
        try:
            api_key = ApiKey.objects.get(usable, digest=hashlib.sha256(key).hexdigest(), revoked_at=None)
        except ApiKey.DoesNotExist:
            raise AuthenticationFailed from None
        return None, api_key

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class MillisecondTimeField(serializers.DateTimeField):
    """A time with milliseconds, without a time zone."""

    def to_representation(self, value: Any) -> Any:
        return value and value.replace(tzinfo=None).isoformat(timespec="milliseconds")


class PaymentSerializer(serializers.ModelSerializer[Payment]):
    """A record. Members without a value are omitted."""

    resource = serializers.ReadOnlyField(default="payment")
    amount = serializers.SerializerMethodField()
    amountNet = serializers.SerializerMethodField()
    amountRemaining = serializers.SerializerMethodField()
    redirectUrl = serializers.CharField(source="redirect_url")
    webhookUrl = serializers.CharField(source="webhook_url")
    organizationId = serializers.CharField(source="organization_id")
    sequenceType = serializers.CharField(source="sequence_type")
    createdAt = MillisecondTimeField(source="created_at")
    expiresAt = MillisecondTimeField(source="expires_at")
    paidAt = MillisecondTimeField(source="paid_at")
    customerId = serializers.CharField(source="customer_id")
    _links = serializers.SerializerMethodField("get_links")

    class Meta:
        model = Payment
        fields = [
            *("id", "resource", "mode", "amount", "amountNet", "amountRemaining", "description"),
            *("method", "redirectUrl", "webhookUrl", "status", "organizationId"),
            *("sequenceType", "metadata", "details", "createdAt", "expiresAt"),
            *("paidAt", "customerId", "_links"),
        ]

    def get_amount(self, payment: Payment) -> dict[str, str]:
        return {"value": str(payment.amount), "currency": payment.amount_currency}

    def get_amountNet(self, payment: Payment) -> dict[str, Any] | None:
        if payment.amount_net is None:
            return None
        return {"value": str(payment.amount_net), "currency": payment.amount_net_currency}

    def get_amountRemaining(self, payment: Payment) -> dict[str, Any] | None:
        if payment.amount_remaining is None:
            return None
        return {"value": str(payment.amount_remaining), "currency": payment.amount_remaining_currency}

    def get_links(self, payment: Payment) -> dict[str, dict[str, str]]:
        base = f"http://{self.context['request'].get_host()}"
        admin_id = payment.id.replace("_", "_5F")
        return {
            "self": {"href": f"{base}/v2/payments/{payment.id}", "type": "application/hal+json"},
            "dashboard": {"href": f"{base}/admin/payments/payment/{admin_id}/change/", "type": "text/html"},
            "documentation": {"href": f"{base}/docs/reference/#payment-record", "type": "text/html"},
        }

    def to_representation(self, instance: Payment) -> dict[str, Any]:
        members = super().to_representation(instance)
        return {name: value for name, value in members.items() if value or name in {"description", "metadata"}}


class Pagination(CursorPagination):
    """Newest first."""

    ordering = ("-created_at", "-id")
    page_size = 20
    page_size_query_param = "limit"
    max_page_size = 250


class PaymentList(ListAPIView[Payment]):
    """The payments of the API key's organization and mode."""

    authentication_classes = [KeyAuthentication]
    serializer_class = PaymentSerializer
    pagination_class = Pagination

    def get_queryset(self) -> Any:
        key = self.request.auth
        return Payment.objects.filter(organization_id=key.organization_id, mode=key.mode)  # type: ignore[union-attr]


urlpatterns = [path("v2/payments", PaymentList.as_view())]
