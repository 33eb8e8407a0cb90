"""The payment record: the one declaration of its fields.

The import's validation, the OpenAPI schema, the database row, the stored row of an import and the CSV export are
derived from `Record`. CONTRIBUTING.md lists where a new field goes.
"""

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_args

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from payments.hal import Link
from payments.models import CUSTOMER_ID, METHOD, PAYMENT_ID, Mode, SequenceType, Status

if TYPE_CHECKING:
    ModeName: TypeAlias = str
    StatusName: TypeAlias = str
    SequenceTypeName: TypeAlias = str
else:
    ModeName = Literal[tuple(Mode.values)]
    StatusName = Literal[tuple(Status.values)]
    SequenceTypeName = Literal[tuple(SequenceType.values)]

ORGANIZATION_ID = r"\A[1-9][0-9]{0,18}\Z"
COUNTRY = r"\A[A-Z]{2}\Z"
CARD_NUMBER = r"\A[0-9X]{4}(?: [0-9X]{4}){2,3}(?: [0-9X]{1,4})?\Z"
TIME = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{3}\Z"
# The parts of an instant in filters and imports. Other programs read these patterns too: they have no extensions.
DATE, HOUR, MINUTE = "[0-9]{4}-[0-9]{2}-[0-9]{2}", "([01][0-9]|2[0-3])", "[0-5][0-9]"
FIND_FRACTION = re.compile("[.,]([0-9]+)").search
LEAP_SECONDS = ("06-30 23:59", "12-31 23:59")  # follow these minutes, in UTC
# A redirect URL must not have one of these schemes: they run a script or read a local file.
SCRIPT_SCHEMES = ("javascript", "data", "vbscript", "file", "blob", "filesystem")
# The longest name in an object, in bytes in UTF-8, and the longest number.
NAME_BYTES_MAX = 1_024
NUMBER_CHARACTERS_MAX = 100

VALUE = r"\A-?(?:0|[1-9][0-9]{0,12})\.[0-9]{2}\Z"

# The types of fields. Patterns end in `\Z`, because `$` also matches before a final line feed. A description completes
# the sentence "<field> must be ...", which import errors use. An optional text needs a pattern that excludes the empty
# text, because the database stores an absent text as an empty one.
PaymentId = Annotated[str, Meta(pattern=PAYMENT_ID, description="`pt_` and 1 to 61 letters, digits, `_` or `-`")]
CustomerId = Annotated[str, Meta(pattern=CUSTOMER_ID, description="`ct_` and 1 to 61 letters, digits, `_` or `-`")]
OrganizationId = Annotated[str, Meta(pattern=ORGANIZATION_ID, description="a positive whole number, as text")]
Method = Annotated[str, Meta(pattern=METHOD, description="a word of 1 to 32 letters, digits, `_` or `-`")]
RedirectUrl = Annotated[
    str,
    Meta(
        pattern=r"\A[A-Za-z][A-Za-z0-9+.-]*:[^\s\x00-\x1f\x7f-\x9f]+\Z",
        max_length=2048,
        description=(
            "an absolute URL of at most 2048 characters, such as https://shop.example/ or myapp:paid, without the "
            f"schemes {', '.join(SCRIPT_SCHEMES)}"
        ),
    ),
]
Url = Annotated[
    str,
    Meta(
        pattern=r"\Ahttps?://[^\x00-\x20\x7f]+\Z",
        max_length=2048,
        description="an http or https URL of at most 2048 characters",
    ),
]
URL_TYPES = (RedirectUrl, Url)

# The types of fields in which a merchant may write any text. An import searches them, and the metadata, for card data.
FREE_TEXT_TYPES = (str, *URL_TYPES)
Time = Annotated[
    str,
    Meta(
        pattern=TIME,
        description="a time in UTC (ISO 8601) with three fractional digits, such as 2018-03-20T13:28:37.123",
    ),
]
Value = Annotated[
    str,
    Meta(
        pattern=VALUE,
        description="a decimal, as text, with at most 13 digits before the point and exactly 2 after it",
    ),
]
Currency = Annotated[str, Meta(pattern=r"\A[A-Z]{3}\Z", description="an ISO 4217 currency code")]
Metadata = Annotated[
    Raw,
    Meta(
        extra_json_schema={
            "type": "object",
            "description": "an object whose values are texts: the merchant's own data",
            "additionalProperties": {"type": "string"},
        }
    ),
]
DetailsDocument = Annotated[Raw, Meta(extra_json_schema={"$ref": "#/components/schemas/Details"})]
Country = Annotated[str, Meta(pattern=COUNTRY, description="an ISO 3166-1 alpha-2 country code")]
CardNumber = Annotated[
    str,
    Meta(
        pattern=CARD_NUMBER,
        description="masked, in groups of four, hidden digits as X, such as 4242 42XX XXXX 4242",
    ),
]


class Details(Struct, frozen=True, rename="camel"):
    """Details of the payment method. A card has these fields; other methods have fields of their own."""

    card_country_code: Country | UnsetType = UNSET
    card_holder: str | UnsetType = UNSET
    card_label: str | UnsetType = UNSET
    card_number: CardNumber | UnsetType = UNSET


class Money(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """An exact amount and its currency."""

    value: Value
    currency: Currency


class RecordLinks(Struct, frozen=True, kw_only=True, rename={"itself": "self"}):
    """The links of a record: the payment in the API and in the admin, and the documentation."""

    itself: Link
    dashboard: Link | UnsetType = UNSET
    documentation: Link


class Record(Struct, kw_only=True, frozen=True, gc=False, rename="camel"):
    """A payment. Its fields have the order of the reference. Fields without a value are absent."""

    id: PaymentId
    resource: Literal["payment"] = "payment"
    mode: ModeName
    amount: Money
    amount_net: Money | UnsetType = UNSET
    amount_remaining: Money | UnsetType = UNSET
    description: str
    method: Method | UnsetType = UNSET
    redirect_url: RedirectUrl | UnsetType = UNSET
    webhook_url: Url | UnsetType = UNSET
    status: StatusName
    organization_id: OrganizationId
    sequence_type: SequenceTypeName
    metadata: Metadata
    details: DetailsDocument | UnsetType = UNSET
    created_at: Time
    expires_at: Time | UnsetType = UNSET
    paid_at: Time | UnsetType = UNSET
    customer_id: CustomerId | UnsetType = UNSET
    links: RecordLinks | UnsetType = field(default=UNSET, name="_links")


# A record to be written: the same fields, but all are required and positional. Keyword arguments would take twice as
# long as the rest of the work on a record.
WrittenRecord = msgspec.defstruct(
    "WrittenRecord",
    [(each.name, each.type, field(name=each.encode_name)) for each in msgspec.structs.fields(Record)],
    frozen=True,
    gc=False,
)

encode = msgspec.json.Encoder().encode


def without_unset(hint: Any) -> Any:
    return get_args(hint)[0] if UnsetType in get_args(hint) else hint


def portable(value: Any) -> Any:
    r"""Return a schema of msgspec, or JSON data that contains some, in a form that other programs read.

    Patterns are regular expressions in all languages of generated clients: they have `^` and `$` for Python's `\A` and
    `\Z`, groups without `?:`, and the wider `[^ ]` for texts without spaces and control characters. An enumeration of
    texts has the type `string`.
    """
    if isinstance(value, list):
        return [portable(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    schema = {key: portable(inner) for key, inner in value.items()}
    if isinstance(pattern := schema.get("pattern"), str):
        pattern = re.sub(r"\[\^[^\]]*\\x[^\]]*\]", "[^ ]", pattern)
        schema["pattern"] = re.sub(r"\\Z$", "$", re.sub(r"^\\A", "^", pattern)).replace("(?:", "(")
    if isinstance(schema.get("enum"), list) and "type" not in schema:
        schema = {"type": "string", **schema}
    return schema


def instant_pattern(*, second: str = MINUTE, fraction: str = "[0-9]+") -> str:
    """Return the pattern of a time in any form of RFC 3339 and of the extended format of ISO 8601."""
    return rf"{DATE}[Tt ]{HOUR}:{MINUTE}(:{second}([.,]{fraction})?)?([Zz]|[+-]{HOUR}(:?{MINUTE})?)?"


def parse_instant(text: str) -> tuple[datetime, str]:
    """Return a time in UTC down to the microsecond, and the further digits of its fraction. They compare as times do.

    A leap second follows the last microsecond of its day. Its further digits start with a colon, which is above digits.

    :raises ValueError: the day is not in the calendar, or has no leap second at this time
    :raises OverflowError: in UTC, the time is outside of the years 1 to 9999
    """
    moment = datetime.fromisoformat(text.upper().replace(":60", ":59"))
    moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    fraction = FIND_FRACTION(text)
    digits = fraction[1].rstrip("0") if fraction else ""
    if ":60" not in text:
        return moment, digits[6:]
    if f"{moment:%m-%d %H:%M}" not in LEAP_SECONDS:
        raise ValueError(text)
    return moment.replace(microsecond=999_999), f":{digits}"


def record_time(moment: datetime) -> str:
    """Return a time in UTC as a record has it, such as 2018-03-20T13:28:37.123."""
    return moment.isoformat(timespec="milliseconds")[:23]


def parse_record_time(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
