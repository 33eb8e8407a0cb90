"""Imports payments from files in one transaction. A repeated import changes nothing.

docs/architecture.md has the path of a record through these modules.
"""

from payments.ingest.formats.sources import Source
from payments.ingest.imports import import_payments
from payments.ingest.writing import ImportResult

__all__ = ["ImportResult", "Source", "import_payments"]
