"""Exports of payments: JSON Lines, CSV files that an import reads, CSV files for a bookkeeper, and reports."""
