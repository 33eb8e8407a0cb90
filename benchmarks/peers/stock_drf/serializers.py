"""Serializes payments as records."""

from datetime import datetime
from typing import Any

from rest_framework import serializers

from benchmarks.peers.stock_drf.models import Payment


class MillisecondTimeField(serializers.DateTimeField):
    """A time with milliseconds, without a time zone."""

    def to_representation(self, value: datetime | None) -> Any:
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
            "id",
            "resource",
            "mode",
            "amount",
            "amountNet",
            "amountRemaining",
            "description",
            "method",
            "redirectUrl",
            "webhookUrl",
            "status",
            "organizationId",
            "sequenceType",
            "metadata",
            "details",
            "createdAt",
            "expiresAt",
            "paidAt",
            "customerId",
            "_links",
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
