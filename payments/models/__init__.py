"""The database tables. Constraints enforce the rules of a record for every writer."""

from payments.models.access_state import AccessState
from payments.models.api_key import ApiKey, ApiKeyQuerySet, KeyState
from payments.models.choices import IN_PROGRESS, Mode, SequenceType, Status
from payments.models.organization import ORGANIZATION_ID_MAX, Access, Organization
from payments.models.payment import (
    CUSTOMER_ID,
    METHOD,
    PAYMENT_ID,
    Payment,
    PaymentQuerySet,
    PaymentsCannotBeDeleted,
    new_payment_id,
    uses_in_flight_index,
    uses_status_index,
)
from payments.models.summed_day import SummedDay

__all__ = [
    "CUSTOMER_ID",
    "IN_PROGRESS",
    "METHOD",
    "ORGANIZATION_ID_MAX",
    "PAYMENT_ID",
    "Access",
    "AccessState",
    "ApiKey",
    "ApiKeyQuerySet",
    "KeyState",
    "Mode",
    "Organization",
    "Payment",
    "PaymentQuerySet",
    "PaymentsCannotBeDeleted",
    "SequenceType",
    "Status",
    "SummedDay",
    "new_payment_id",
    "uses_in_flight_index",
    "uses_status_index",
]
