"""Recognizes security codes, PINs and tracks: by the words of a name, and by the form of a value.

Some words are a security code, a PIN or a track wherever they are the whole name. Beside other words, as in `cvvCheck`,
they are one only if the value has its form. The functions take folded texts (folding.py), and their cost is linear.
"""

import re
from collections.abc import Sequence
from typing import Final, TypeAlias

from payments.ingest.cards.folding import spell

# The form of the values that are a security code or a PIN.
Form: TypeAlias = re.Pattern[str]

NAME = re.compile(
    r"(?:card)?(?:"
    r"(?:cvv2?|cvc2?|cav2?|cvn2?|csc|cid)+(?:code|number|value)?|"
    r"(?:security|verification|cardverification)(?:code|number|value)|"
    r"pin(?:block|number)?|track[123]?(?:data)?|magneticstripe|magstripe"
    r")"
)

# In texts that `words` returns. A short word is part of others (opinion, acid): it stands alone, or between these.
PREFIXES = ("card", "cc", "debit", "atm", "emv", "full", "raw", "enc", "new", "old", "user", "amex", "m")
BEFORE = "|".join((r"(?:\b", *(rf"(?<=\b{prefix})" for prefix in PREFIXES))) + ")"
AFTER = r"(?:code|number|value|block|blk|data|digits|entered){0,2}\b"
SECURITY_CODE: Final = spell(
    rf"cvv|cvc|(?=c)\bc v [vc]\b|(?=c){BEFORE}(?:csc|cvn|cav|cvd|cv(?= 2\b)){AFTER}|"
    r"(?<!social)(?<!social )(?:security|verification|card ?validation|signature ?panel) ?(?:code|number|value|digits)|"
    # German, Dutch, Swedish, Danish and Norwegian, Finnish
    r"prue?f ?(?:ziffer|nummer|nr|zahl|code)|sicherheits ?(?:code|nummer|nr|zahl)|"
    r"(?:beveiligings|veiligheids|verificatie) ?code|sakerhets ?kod|sikkerhe[dt]s ?kode|turva ?(?:koodi|luku)|"
    # French and Romanian, Spanish, Portuguese, Italian
    r"cryptogramme|cod(?:e|ul|igo|ice)? ?(?:d[ei] ?)?"
    r"(?:securit(?:e|ate)|seguridad|seguranca|sicurezza|verification|verificaci?on|verificacao|verifica\b)|"
    # Polish, Czech, Hungarian, Turkish, Russian, Greek, Chinese, Japanese, Korean
    r"kod ?bezpieczenstwa|bezpecnostni ?kod|biztonsagi ?kod|guvenlik ?kodu|код ?(?:безопасности|проверки)|"
    r"проверочный ?код|κωδικο[σς] ?ασφαλειας|安全[码碼]|セキュリティー? ?コード|보안 ?코드"
)
# Names of security codes that are often other codes. In a text, they are ignored.
AMBIGUOUS: Final = (
    rf"(?=c){BEFORE}(?:cid|ccv){AFTER}|card ?verification|(?<!social )security ?(?:no|nr|num)\b|"
    r"\bcv ?number\b|\b(?:card|sec) ?code\b"
)
# Not the device that reads a PIN, nor a payment by debit card.
PIN: Final = spell(
    rf"(?=p){BEFORE}pin{AFTER}(?! ?(?:pad|debit)\b)|geheim ?(?:zahl|nummer)|"
    r"\bpin ?(?:kode?|nummer)\b|code ?(?:confidentiel|secret)\b|\bпин(?: ?код|\b)"
)
TRACK = re.compile(
    rf"(?=t){BEFORE}track ?(?:[123]|i{{1,3}}|one|two|three|data|equivalent)\b|"
    r"mag(?:netic)? ?stripe?(?: ?(?:data|tracks?))?$|"
    r"magnetstreifen|magneetstrip|band[ae] ?magneti(?:ca|que)"
)

# A PIN has up to 12 digits, a PIN block 8 or 16 bytes (ISO 9564).
CODE_FORM = re.compile(r"\W*[0-9](?:[ -]?[0-9]){2,3}(?:\.0+)?\W*")
PIN_FORM = re.compile(r"\W*(?:[0-9](?:[ -]?[0-9]){2,11}(?:\.0+)?|(?:[0-9A-Fa-f]{16}){1,2})\W*")
FORMS: Sequence[tuple[re.Pattern[str], Form]] = (
    # In India, a PIN code is a postal code of six digits.
    (re.compile(r"\bpin ?code\b"), re.compile(r"(?!\W*[0-9]{3} ?[0-9]{3}\W*\Z)" + PIN_FORM.pattern)),
    (re.compile(PIN), PIN_FORM),
    (re.compile(f"{SECURITY_CODE}|{AMBIGUOUS}"), CODE_FORM),
)
IN_TEXT = re.compile(
    r"(?=[bcgkpstv\x80-\U0010ffff])"  # the first letters of the words: the search is four times as fast
    rf"(?:(?:{SECURITY_CODE})(?: [23])?(?:(?: ?(?:code|number|value|is|no)\b| [:=]){{0,6}}|"
    rf" ?[a-z]{{0,16}}(?: [0-9])?(?: [:=])+)|(?:{PIN})(?: code)?(?: [:=])+(?! [0-9]{{3}} [0-9])) [0-9]{{3,4}}\b"
)
HAS_CODE_DIGITS = re.compile(r"(?<![0-9])[0-9]{3,4}(?![0-9])")

HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
WORD = re.compile(r"[^\W\d_]+|[0-9]+|[:=]")


def words(text: str) -> str:
    """Return the words, numbers and signs of assignment: `card.pinCode2=` becomes `card pin code 2 =`."""
    return " ".join(WORD.findall(HUMP.sub(" ", spell(text)))).lower()


def plain_letters(name: str) -> str:
    """Return the letters and digits of a name: `card.pin-code2` becomes `cardpincode2`."""
    return re.sub(r"[^a-z0-9]", "", spell(name).lower())


def is_secret_name(name: str) -> bool:
    """Return whether the name alone forbids the value, in any form."""
    return NAME.fullmatch(plain_letters(name)) is not None or TRACK.search(words(name)) is not None


def form_of_secret(name: str) -> Form | None:
    """Return the form of the values that must not be stored under a name; None if it has none of the words."""
    text = words(name)
    form = next((form for pattern, form in FORMS if pattern.search(text)), None)
    return CODE_FORM if form is None and is_secret_name(name) else form


def mentions_code(text: str) -> bool:
    """Return whether a text contains the name of a security code and its value."""
    return HAS_CODE_DIGITS.search(text) is not None and IN_TEXT.search(words(text)) is not None
