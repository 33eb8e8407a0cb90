"""Words of a customer's mail that the search box understands."""

from payments.models import Status

STATUSES = {
    **{status.value: status.value for status in Status},
    **dict.fromkeys(("paid", "successful"), Status.SUCCEEDED.value),
    "declined": Status.FAILED.value,
    "cancelled": Status.CANCELED.value,
}

BRANDS = ("visa", "mastercard", "american express", "amex", "maestro")

# The names of methods differ between providers.
METHODS = {
    **{name: name for name in ("ideal", "paypal", "bancontact", "klarna")},
    **dict.fromkeys(("card", "credit card", "creditcard", "debit card", *BRANDS), "creditcard,card"),
    **dict.fromkeys(("bank transfer", "banktransfer"), "banktransfer"),
    **dict.fromkeys(("direct debit", "directdebit", "sepa"), "directdebit,sepa_debit"),
    **dict.fromkeys(("apple pay", "applepay"), "applepay"),
}

# A dollar is a currency of several countries.
CURRENCY_WORDS = {
    **dict.fromkeys(("€", "EURO", "EUROS"), "EUR"),
    **dict.fromkeys(("£", "POUND", "POUNDS"), "GBP"),
    **dict.fromkeys(("$", "DOLLAR", "DOLLARS"), ""),
}

# Patterns of words without a meaning for the search.
FILLERS = (
    r"(?:i|we|he|she|they)(?:\s(?:have|has)|['\u2019](?:ve|s))?\spaid",
    r"(?:a\s|the\s)?(?:payment|amount)\sof",
    r"(?-i:AT|BE|CH|CZ|DE|DK|ES|FI|FR|GB|IE|IT|LU|NL|NO|PL|PT|SE|UK|US)",  # countries
    *("about", "and", "at", "by", "for", "from", "in", "my", "of", "on", "the", "to", "with"),
)
