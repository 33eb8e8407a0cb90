"""The payment record: its form, declared once for the API, the import, the export and the OpenAPI document."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from payments.hal import Link
from payments.models import CUSTOMER_ID, METHOD, PAYMENT_ID, Mode, SequenceType, Status

if TYPE_CHECKING:
    ModeWord: TypeAlias = str
    StatusWord: TypeAlias = str
    SequenceTypeWord: TypeAlias = str
else:
    ModeWord = Literal[tuple(Mode.values)]
    StatusWord = Literal[tuple(Status.values)]
    SequenceTypeWord = Literal[tuple(SequenceType.values)]

ORGANIZATION_ID = r"\A[1-9][0-9]{0,18}\Z"
COUNTRY = r"\A[A-Z]{2}\Z"
TIME = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{3}\Z"
VALUE = r"\A-?(?:0|[1-9][0-9]{0,12})\.[0-9]{2}\Z"

PaymentId = Annotated[str, Meta(pattern=PAYMENT_ID, description="`pt_` and 1 to 61 letters or digits")]
CustomerId = Annotated[str, Meta(pattern=CUSTOMER_ID, description="`ct_` and 1 to 61 letters or digits")]
OrganizationId = Annotated[str, Meta(pattern=ORGANIZATION_ID, description="a positive whole number, as text")]
Method = Annotated[str, Meta(pattern=METHOD, description="a word of 1 to 32 lower-case letters, digits or underscores")]
Url = Annotated[
    str,
    Meta(
        pattern=r"\Ahttps?://[^\x00-\x20\x7f]+\Z",
        max_length=2048,
        description="an http or https address of at most 2048 characters",
    ),
]
Time = Annotated[
    str,
    Meta(
        pattern=TIME,
        description="a time in UTC (ISO 8601) to the millisecond, such as 2018-03-20T13:28:37.123",
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
            "description": "an object whose values are all texts: the merchant's own notes",
            "additionalProperties": {"type": "string"},
        }
    ),
]
Country = Annotated[str, Meta(pattern=COUNTRY, description="an ISO 3166-1 alpha-2 country code")]
CardNumber = Annotated[
    str,
    Meta(
        pattern=r"\A[0-9X]{4}(?: [0-9X]{4}){2,3}(?: [0-9X]{1,4})?\Z",
        description="masked, in groups of four, hidden digits as X, such as 4242 42XX XXXX 4242",
    ),
]


class Details(Struct, frozen=True, rename="camel"):
    """What the method tells of the payment. Of a card it tells these; another method may tell anything."""

    card_country_code: Country | UnsetType = UNSET
    card_holder: str | UnsetType = UNSET
    card_label: str | UnsetType = UNSET
    card_number: CardNumber | UnsetType = UNSET


class Money(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """An amount, exactly, and its currency."""

    value: Value
    currency: Currency


class RecordLinks(Struct, frozen=True, rename={"itself": "self"}):
    """Where a payment is: for programs, for staff, and what is written about it."""

    itself: Link
    dashboard: Link
    documentation: Link


class Record(Struct, kw_only=True, frozen=True, gc=False, rename="camel"):
    """A payment, its keys in the contract's order; one without a value is left out."""

    id: PaymentId
    resource: Literal["payment"] = "payment"
    mode: ModeWord
    amount: Money
    amount_net: Money | UnsetType = UNSET
    amount_remaining: Money | UnsetType = UNSET
    description: str
    method: Method | UnsetType = UNSET
    redirect_url: Url | UnsetType = UNSET
    webhook_url: Url | UnsetType = UNSET
    status: StatusWord
    organization_id: OrganizationId
    sequence_type: SequenceTypeWord
    metadata: Metadata
    details: Annotated[Raw, Meta(extra_json_schema={"$ref": "#/components/schemas/Details"})] | UnsetType = UNSET
    created_at: Time
    expires_at: Time | UnsetType = UNSET
    paid_at: Time | UnsetType = UNSET
    customer_id: CustomerId | UnsetType = UNSET
    links: RecordLinks | UnsetType = field(default=UNSET, name="_links")


class GivenRecord(Record, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A record as somebody hands it in: any `resource` and `_links` are read over, any other key is refused."""

    resource: Any = "payment"
    metadata: dict[str, str]  # type: ignore[assignment]  # read, where a record that is given out holds its text
    links: Any = field(default=UNSET, name="_links")


# A record to be written out: the same fields, but all of them given, and by their position. So many keywords would
# take twice as long as the rest of the work.
WrittenRecord = msgspec.defstruct(
    "WrittenRecord",
    [(each.name, each.type, field(name=each.encode_name)) for each in msgspec.structs.fields(Record)],
    frozen=True,
    gc=False,
)

encode = msgspec.json.Encoder().encode


def schemas() -> dict[str, dict[str, Any]]:
    """Return the record's JSON Schema and those of its parts, by name."""
    _, found = msgspec.json.schema_components([Record, Details], ref_template="#/components/schemas/{name}")
    return found


def rules() -> dict[str, str]:
    """Return what every field must be, by its path, in words for whoever has to correct it."""
    return dict(rules_of("Record", schemas()))


def rules_of(name: str, found: dict[str, dict[str, Any]], path: str = "") -> Iterator[tuple[str, str]]:
    for key, schema in found[name]["properties"].items():
        if "enum" in schema:
            yield path + key, f"must be one of {', '.join(schema['enum'])}"
        elif "description" in schema:
            yield path + key, f"must be {schema['description']}"
        elif "$ref" in schema:
            yield from rules_of(schema["$ref"].rpartition("/")[2], found, f"{path}{key}.")
