"""The form of the members of a record: reads a JSON object member by member, so that all errors are found.

An optional member that is null is absent.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, ValidationError
from msgspec.structs import fields

from payments.ingest.errors import FieldError
from payments.ingest.schema import IGNORED, INPUT_TYPES, InputRecord
from payments.record import Details, DetailsDocument, Metadata, Money, Record, without_unset

NULL = b"null"

MUST_BE_OBJECT = "must be a JSON object"
MUST_BE_TEXT = "must be a text"

decode_record = msgspec.json.Decoder(InputRecord).decode
decode_card = msgspec.json.Decoder(Details | None).decode
decode_object = msgspec.json.Decoder(dict[str, Raw]).decode
decode_text = msgspec.json.Decoder(str).decode


@dataclass
class Findings:
    """The errors of a record, at most one for each field, the names of its unknown members, and `Options.not_cards`."""

    reasons: dict[str | None, str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    not_cards: int = 0

    def add(self, path: str | None, reason: str) -> None:
        self.reasons.setdefault(path, reason)

    def add_all(self, errors: Iterable[FieldError]) -> None:
        for path, reason in errors:
            self.add(path, reason)

    @property
    def errors(self) -> list[FieldError]:
        return list(map(FieldError._make, self.reasons.items()))


# Returns the value of a member; UNSET if it is invalid.
ReadMember: TypeAlias = Callable[[Raw, str, Findings], Any]


class Member(NamedTuple):
    """A member of an object: its names in Python and in JSON, and how its value is read."""

    name: str
    json_name: str
    is_required: bool
    read: ReadMember


def read_record(text: bytes, findings: Findings) -> dict[str, Any]:
    """Return the valid values of a record, by their names in Python.

    :raises DecodeError: the text is not JSON
    :raises ValidationError: the value is not an object
    """
    if (values := read_valid_record(text)) is not None:
        return values
    members = decode_object(text)
    for name in IGNORED.values():
        members.pop(name, None)
    values = read_members(members, RECORD_MEMBERS, "", findings)
    findings.unknown += members
    return values


def read_valid_record(text: bytes) -> dict[str, Any] | None:
    """Return the values of a record; None if a member is invalid or unknown. The decoder stops at the first of these.

    This takes half as long as reading member by member.
    """
    try:
        record = decode_record(text)
        values = {member.name: getattr(record, member.name) for member in RECORD_MEMBERS}
        present = {name: value for name, value in values.items() if value is not UNSET and value is not None}
        if "details" in present and decode_card(present["details"]) is None:
            del present["details"]
    except ValidationError:
        return None
    return present


def read_members(members: dict[str, Raw], known: list[Member], path: str, findings: Findings) -> dict[str, Any]:
    """Return the valid values of the known members, by their names in Python. Other members are left in `members`."""
    values: dict[str, Any] = {}
    for member in known:
        raw = members.pop(member.json_name, None)
        member_path = f"{path}{member.json_name}"
        if raw is None or (bytes(raw) == NULL and not member.is_required):
            if member.is_required:
                findings.add(member_path, "is missing")
        elif bytes(raw) == NULL:
            findings.add(member_path, "must not be null")
        else:
            value = member.read(raw, member_path, findings)
            if value is not UNSET:
                values[member.name] = value
    return values


def read_scalar(raw: Raw, path: str, findings: Findings, *, decode: Callable[[Raw], Any], reason: str) -> Any:
    try:
        return decode(raw)
    except ValidationError:
        findings.add(path, reason)
        return UNSET


def read_object(raw: Raw, path: str, findings: Findings, *, reason: str = MUST_BE_OBJECT) -> dict[str, Raw] | UnsetType:
    if b"".join(bytes(raw).split()) == b"[]":  # so PHP writes an empty object
        return {}
    value: dict[str, Raw] | UnsetType = read_scalar(raw, path, findings, decode=decode_object, reason=reason)
    return value


def read_money(raw: Raw, path: str, findings: Findings) -> Money | UnsetType:
    members = read_object(raw, path, findings, reason="must be an object with value and currency")
    if members is UNSET:
        return UNSET
    values = read_members(members, MONEY_MEMBERS, f"{path}.", findings)
    findings.unknown += [f"{path}.{name}" for name in members]
    return Money(**values) if len(values) == len(MONEY_MEMBERS) else UNSET


def read_text_members(raw: Raw, path: str, findings: Findings) -> dict[str, str] | UnsetType:
    members = read_object(raw, path, findings, reason="must be a JSON object whose values are texts")
    if members is UNSET:
        return UNSET
    read = partial(read_scalar, findings=findings, decode=decode_text, reason=MUST_BE_TEXT)
    texts = {name: read(text, f"{path}.{name}") for name, text in members.items()}
    return texts if UNSET not in texts.values() else UNSET


def read_details(raw: Raw, path: str, findings: Findings) -> Raw | UnsetType:
    """Return details without the members of a card that are null. All other members may have any value."""
    members = read_object(raw, path, findings)
    if members is UNSET:
        return UNSET
    is_null = {member.json_name for member in CARD_MEMBERS if bytes(members.get(member.json_name, Raw())) == NULL}
    kept = {name: value for name, value in members.items() if name not in is_null}
    read_members(members, CARD_MEMBERS, f"{path}.", findings)
    return Raw(msgspec.json.encode(kept)) if is_null or not kept else raw


READERS: dict[Any, ReadMember] = {Money: read_money, Metadata: read_text_members, DetailsDocument: read_details}


def members_of(struct: type[Struct], *, without: tuple[str, ...] = ()) -> list[Member]:
    hints = get_type_hints(struct, include_extras=True)
    return [
        Member(each.name, each.encode_name, each.required, reader_of(each.encode_name, hints[each.name]))
        for each in fields(struct)
        if each.name not in without
    ]


def reader_of(name: str, type_hint: Any) -> ReadMember:
    type_ = without_unset(type_hint)
    if type_ in READERS:
        return READERS[type_]
    type_ = INPUT_TYPES.get(type_, type_)
    hint = f"; --map {name}:VALUE=TO translates it" if get_origin(type_) is Literal else ""
    return partial(read_scalar, decode=msgspec.json.Decoder(type_).decode, reason=rule_of(type_) + hint)


def rule_of(type_: Any) -> str:
    """Return the reason why a value is refused that has not this type."""
    if get_origin(type_) is Literal:
        return f"must be one of {', '.join(get_args(type_))}"
    descriptions = [part.description for part in get_args(type_) if isinstance(part, Meta)]
    return f"must be {descriptions[0]}" if descriptions else MUST_BE_TEXT


MONEY_MEMBERS = members_of(Money)
CARD_MEMBERS = members_of(Details)
RECORD_MEMBERS = members_of(Record, without=tuple(IGNORED))
