"""Imports payments from files in one transaction. A repeated import changes nothing.

A record passes these modules in this order:

formats/sources     streams of bytes, and the locations of records
formats/detection   detects the format of a file and splits it into records, each with its location: json_documents,
                    api_pages, csv_files with csv_headers and spreadsheets
translations        translates words of other systems
fast_path           recognizes canonical records
validation          validates all other records: json_values (valid JSON that is refused), schema (the form of a
                    record), members (all errors of its form); errors has the exception
cards/details       finds card numbers (numbers, without account_numbers) and security codes in folded texts (folding)
stored_rows         converts a record to a database row
batches             collects rows into batches
imports             an import: options, errors and transaction; background writes a batch in a second thread
writing             inserts or updates the rows; staging has them in a temporary table, and compares them
change_log          notes the changes, and records them at the end of the transaction
"""

from payments.ingest.formats.sources import Source
from payments.ingest.imports import import_payments
from payments.ingest.writing import ImportResult

__all__ = ["ImportResult", "Source", "import_payments"]
