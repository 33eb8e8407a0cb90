"""The currencies of money: ISO 4217 as py-moneyed lists it, and currencies added since."""

from moneyed import CURRENCIES, add_currency

for code, numeric in {"XAD": "396", "XCG": "532", "ZWG": "924"}.items():
    if code not in CURRENCIES:
        add_currency(code, numeric)

__all__ = ["CURRENCIES"]
