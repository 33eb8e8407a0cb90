"""The currencies that money may have: ISO 4217, as py-moneyed lists it, and what has come to it since."""

from moneyed import CURRENCIES, add_currency

for code, numeric in {"XAD": "396", "XCG": "532", "ZWG": "924"}.items():
    if code not in CURRENCIES:
        add_currency(code, numeric)

__all__ = ["CURRENCIES"]
