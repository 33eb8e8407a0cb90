"""Translates other systems' words for the mode, the status and the sequence type: `--map status:paid=succeeded`."""

import json
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias, get_args, get_origin

import msgspec
from msgspec import Raw

from payments.ingest.errors import printable_name
from payments.record import encode
from payments.rows import FIELDS

# The new words, by the member and by the word in the file.
Translations: TypeAlias = Mapping[str, Mapping[str, str]]

# The words of the members with a closed vocabulary.
WORDS = {field.json_name: get_args(field.type) for field in FIELDS if get_origin(field.type) is Literal}

decode_members = msgspec.json.Decoder(dict[str, Raw]).decode


def parse_translations(arguments: Iterable[str]) -> Translations:
    """Return the translations of arguments such as `status:paid=succeeded`.

    :raises ValueError: an argument is invalid, or it differs from an earlier one for the same word
    """
    translations: dict[str, dict[str, str]] = {}
    for argument in arguments:
        member, _, words = argument.partition(":")
        word, _, new_word = words.partition("=")
        if not (word and new_word):
            problem = "must be MEMBER:FROM=TO, such as status:paid=succeeded"
        elif new_word not in WORDS.get(member, ()):
            part, allowed = ("TO", WORDS[member]) if member in WORDS else ("MEMBER", WORDS)
            problem = f"{part} must be one of {', '.join(allowed)}"
        elif translations.setdefault(member, {}).setdefault(word, new_word) != new_word:
            problem = f"an earlier one translates FROM to {translations[member][word]}"
        else:
            continue
        raise ValueError(f"{printable_name(argument)}: {problem}")
    return translations


def translate(text: bytes, translations: Translations) -> bytes:
    """Return a record with the new words. The text stays the same if it has none, is invalid, or has a name twice.

    Otherwise the validation would not see the second name.
    """
    try:
        members = decode_members(text)
        words = {name: msgspec.json.decode(members[name]) for name in translations if name in members}
        found = {name: word for name, word in words.items() if isinstance(word, str) and word in translations[name]}
        if not found or len(json.loads(text, object_pairs_hook=list, parse_int=str)) > len(members):
            return text
    except (msgspec.DecodeError, ValueError, RecursionError):
        return text
    return encode(members | {name: Raw(encode(translations[name][word])) for name, word in found.items()})
