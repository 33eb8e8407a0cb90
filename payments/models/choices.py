"""The values of a payment's mode, status, sequence type, method and currency, and the words for them on pages."""

from django.db import models


class Mode(models.TextChoices):
    """Live payments moved money; test payments did not."""

    LIVE = "live"
    TEST = "test"


class Status(models.TextChoices):
    """The state of a payment."""

    OPEN = "open"
    PENDING = "pending"
    AUTHORIZED = "authorized"
    SUCCEEDED = "succeeded", "Paid"
    FAILED = "failed"
    CANCELED = "canceled"
    EXPIRED = "expired"


# Payments without a final status: few at any time, and clients ask for them often.
IN_PROGRESS = frozenset({Status.OPEN, Status.PENDING, Status.AUTHORIZED})


class KeyScope(models.TextChoices):
    """What an API key may do: read payments, or import them."""

    READ = "read"
    IMPORT = "import"


class ImportWay(models.TextChoices):
    """How payments arrive: by the command, or by the API."""

    COMMAND = "command", "by command"
    API = "api", "over the API"


class SequenceType(models.TextChoices):
    """A payment's role in a subscription."""

    ONEOFF = "oneoff", "One-off"
    FIRST = "first", "First of a series"
    RECURRING = "recurring", "Recurring"


# Methods of frequent providers, without separators and in lower case.
METHODS = {
    "card": "Card",
    "creditcard": "Credit card",
    "ideal": "iDEAL",
    "paypal": "PayPal",
    "banktransfer": "Bank transfer",
    "directdebit": "SEPA direct debit",
    "sepadebit": "SEPA direct debit",
    "bancontact": "Bancontact",
    "applepay": "Apple Pay",
    "googlepay": "Google Pay",
    "klarna": "Klarna",
    "eps": "EPS",
    "giftcard": "Gift card",
}


def method_label(method: str) -> str:
    """Return a method in words: `Apple Pay` for `applePay`. An unknown method stays as it is."""
    return METHODS.get(method.lower().replace("_", "").replace("-", ""), method)


# The codes of ISO 4217, also former ones and a few that other standards use.
CODES = """
    ADP AED AFA AFN ALK ALL AMD ANG AOA AOK AON AOR ARA ARL ARM ARP ARS ATS AUD AWG AZM AZN BAD BAM BAN BBD BDT BEC BEF
    BEL BGL BGM BGN BGO BHD BIF BMD BND BOB BOL BOP BOV BRB BRC BRE BRL BRN BRR BRZ BSD BTN BUK BWP BYB BYN BYR BZD CAD
    CDF CHE CHF CHW CLE CLF CLP CNH CNX CNY COP COU CRC CSD CSK CUC CUP CVE CYP CZK DDM DEM DJF DKK DOP DZD ECS ECV EEK
    EGP ERN ESA ESB ESP ETB EUR FIM FJD FKP FRF GBP GEK GEL GHC GHS GIP GMD GNF GNS GQE GRD GTQ GWE GWP GYD HKD HNL HRD
    HRK HTG HUF IDR IEP ILP ILR ILS IMP INR IQD IRR ISJ ISK ITL JMD JOD JPY KES KGS KHR KMF KPW KRH KRO KRW KWD KYD KZT
    LAK LBP LKR LRD LSL LTL LTT LUC LUF LUL LVL LVR LYD MAD MAF MCF MDC MDL MGA MGF MKD MKN MLF MMK MNT MOP MRO MRU MTL
    MTP MUR MVP MVR MWK MXN MXP MXV MYR MZE MZM MZN NAD NGN NIC NIO NLG NOK NPR NZD OMR PAB PEI PEN PES PGK PHP PKR PLN
    PLZ PTE PYG QAR RHD ROL RON RSD RUB RUR RWF SAR SBD SCR SDD SDG SDP SEK SGD SHP SIT SKK SLE SLL SOS SRD SRG SSP STD
    STN SUR SVC SYP SZL THB TJR TJS TMM TMT TND TOP TPE TRL TRY TTD TVD TWD TZS UAH UAK UGS UGX USD USN USS UYI UYP UYU
    UYW UZS VEB VED VEF VES VND VNN VUV WST XAD XAF XAG XAU XBA XBB XBC XBD XCD XCG XDR XEU XFO XFU XOF XPD XPF XPT XRE
    XSU XTS XUA XXX YDD YER YUD YUM YUN YUR ZAL ZAR ZMK ZMW ZRN ZRZ ZWD ZWG ZWL ZWN ZWR
"""

CURRENCIES = frozenset(CODES.split())
