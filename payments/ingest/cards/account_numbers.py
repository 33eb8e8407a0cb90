"""Recognizes numbers that are no card numbers: IBANs and RF references with valid check digits, and UUIDs.

The functions take folded texts (folding.py), and their cost is linear in the length of the text.
"""

import re
from collections.abc import Iterator
from functools import cache
from string import ascii_letters
from typing import Final

from payments.ingest.cards.numbers import DIGITS_MAX, contains_number

# The characters after the check digits: of an IBAN by its country (IBAN registry, release 101), and of an RF reference
# (ISO 11649). `a4n10` are 4 letters and 10 digits, and c are both.
FORMS = (
    "a1n10c12 IT SM|a2n12 FK|a2n16 GE|a4c13 LV|a4c14 BH|a4c15 GI|a4c16 PK RO|a4c20 AZ|a4c21 PS QA|a4c22 KW|a4c24 LC|"
    "a4n10 NL|a4n14 GB IE|a4n15 IQ|a4n16 VG|a4n19a3 MU|a4n20 HN NI SV|a4n20a3 SC|a4n4c18 JO YE|a4n5c18 MT|a4n6c8 BG|"
    "c20 MD|c24 GT|c4n20 DO|c4n4c16 BY|n10c11n2 FR MC|n11 NO|n12 BE|n14 DK FI FO GL SD|n14c15 RU|n15 SI|n16 AT BA EE LT"
    " MN XK|n17 HR|n18 CR DE ME RS VA|n19 AE IL SO TL|n20 CZ ES SE SK TN|n21 LY PT ST|n22 IS|n23 BI DJ MR|n23a1c1 BR|"
    "n24 HU PL|n25 EG|n2c18 SA|n3c10n2 MK|n3c13 KZ LU|n3c16 OM|n4c20 LB|n5c12 CH LI|n6c16 TR|n6c19 UA|n7c16 GR"
    "|n8c12 AD|n8c16 AL CY|c11,21 RF"
)
CHARACTERS = {"n": "[0-9]", "a": "[A-Za-z]", "c": "[0-9A-Za-z]"}
APART = " ._/+\u2010\u2011\u2012\u2013\u2014\u2015-"
GAP = f"[{APART}]{{0,3}}+"

# The form of each country.
ACCOUNTS = {country: form for form, *countries in map(str.split, FORMS.split("|")) for country in countries}
ACCOUNT_START = re.compile(rf"[A-Za-z](?<![0-9A-Za-z].)[A-Za-z]{GAP}[0-9]")
# Further groups of an account number in groups of four, but not a date. Then it has another length.
MORE_GROUPS = re.compile(r"(?<=[ ._/-][0-9]{4})([ ._/-])[0-9]{3,4}(?:\1[0-9]{3,4}){0,4}(?![0-9]|-[0-9])")
ACCOUNT_DIGITS = str.maketrans({letter: f"{int(letter, 36)}" for letter in ascii_letters} | dict.fromkeys(APART, ""))
UUID = re.compile(r"\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b")
LETTERS: Final = " number "  # replaces account numbers and UUIDs: it separates the digits before from those after


@cache
def account_pattern(form: str) -> re.Pattern[str]:
    """Return the pattern of an account number, and of the letter or digit that follows."""
    parts = re.findall("([nac])([0-9,]+)", f"a2n2{form}")
    return re.compile(f"({''.join(f'(?:{GAP}{CHARACTERS[kind]}){{{count}}}' for kind, count in parts)})([0-9A-Za-z]?)")


def without_other_numbers(text: str) -> str:
    """Return a text without UUIDs, IBANs and RF references. It ends with what follows these without a space."""
    if not ACCOUNT_START.search(text := UUID.sub(LETTERS, text)):
        return text
    parts, behind, end = [], "", 0
    for account in valid_accounts(text):
        begin, next_begin = account.span(1)
        more = MORE_GROUPS.match(text, next_begin)
        if account[2]:
            behind += LETTERS + text[next_begin : next_begin + 2 * DIGITS_MAX]
        elif begin >= end and not (more and contains_number(account[1] + more[0]) > contains_number(account[1])):
            parts += [text[end:begin], LETTERS]
            end = next_begin
    return "".join([*parts, text[end:], behind])


def valid_accounts(text: str) -> Iterator[re.Match[str]]:
    """Yield the IBANs and RF references with valid check digits, and the letter or digit that follows."""
    for start in ACCOUNT_START.finditer(text):
        form = ACCOUNTS.get(start[0][:2].upper())
        if form and (match := account_pattern(form).match(text, start.start())):
            # The country and the check digits go to the end, and letters count as 10 to 35 (ISO 13616).
            digits = match[1].translate(ACCOUNT_DIGITS)
            if int(digits[6:] + digits[:6]) % 97 == 1 and "02" <= digits[4:6] <= "98":
                yield match
