"""Imports payments from files in one transaction. A repeated import changes nothing."""

from payments.ingest.imports import ImportResult, import_payments
from payments.ingest.reading import Source

__all__ = ["ImportResult", "Source", "import_payments"]
