"""Models of the service's tables, as `inspectdb` would write them."""

from django.db import models


class ApiKey(models.Model):
    """An API key."""

    organization_id = models.BigIntegerField()
    mode = models.CharField(max_length=4)
    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        managed = False
        db_table = "payments_apikey"

    def __str__(self) -> str:
        return f"{self.organization_id} ({self.mode})"


class Payment(models.Model):
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
        managed = False
        db_table = "payments_payment"

    def __str__(self) -> str:
        return str(self.id)
