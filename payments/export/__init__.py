"""Exports of payments: JSON Lines, CSV files that an import reads, and CSV files for a bookkeeper."""

from payments.export.lines import export_payments

__all__ = ["export_payments"]
