"""The database tables. Constraints enforce the rules of a record for every writer."""

from payments.models.access_state import (
    CHANGE_PAYMENTS_MAX,
    AccessState,
    Change,
    Days,
    SummedDay,
    UtcDay,
    current_epoch,
    new_change_id,
)
from payments.models.api_key import ApiKey, ApiKeyQuerySet, KeyState
from payments.models.choices import IN_PROGRESS, ImportWay, KeyScope, Mode, SequenceType, Status
from payments.models.days import DayKind
from payments.models.history import ImportOutcome, ImportPart, ImportRun, StatusChange
from payments.models.import_times import ImportTimes
from payments.models.organization import ORGANIZATION_ID_MAX, Access, Organization
from payments.models.payment import (
    CUSTOMER_ID,
    METHOD,
    PAYMENT_ID,
    RECORD_BYTES_MAX,
    TEXT_BYTES_MAX,
    Payment,
    PaymentQuerySet,
    PaymentsCannotBeDeleted,
    new_payment_id,
    uses_in_flight_index,
    uses_status_index,
)
from payments.models.recording import Changes
from payments.models.staff import (
    PaymentRead,
    ReadKind,
    Role,
    SavedFilter,
    StaffOrganization,
    StaffPreferences,
    StaffSession,
)
