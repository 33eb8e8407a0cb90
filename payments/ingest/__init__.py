"""Imports payments from files in one transaction. A repeated import changes nothing.

A record passes these modules in this order:

reading          splits files into records (JSON Lines, arrays, saved pages), each with its location
fast_path        recognizes canonical records
validation       validates all other records; decoder_messages reads the errors of the JSON decoder
card_data        finds card numbers (card_numbers) and security codes in folded texts (folding)
stored_rows      converts a record to a database row
batches          collects rows into batches
imports          an import: options, errors and transaction; background writes a batch in a second thread
writing          inserts or updates the rows
changes          notes the changes, and records them at the end of the transaction
"""

from payments.ingest.imports import ImportResult, import_payments
from payments.ingest.reading import Source

__all__ = ["ImportResult", "Source", "import_payments"]
