"""Getting payments in: read, check, write, all or nothing. An import that is repeated changes nothing."""

from payments.ingest.imports import ImportResult, import_payments
from payments.ingest.reading import Source

__all__ = ["ImportResult", "Source", "import_payments"]
