"""Exports of payments: JSON Lines, CSV files that an import reads, and CSV files for a bookkeeper."""

from payments.export.files import export_payments

__all__ = ["export_payments"]
