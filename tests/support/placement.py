"""The databases and the group of each test. docs/testing.md explains them.

The suite runs on SQLite and, at the same time, on PostgreSQL. A test that is not listed runs on both. If Citus is
available, some tests also run on a cluster whose payments are distributed. An entry is a module, or one test of a
module, relative to `tests/`.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Final

import pytest
from django.db import connection

from tests.support.migrated import IS_CITUS
from tests.support.scale import IS_LONG

TESTS: Final = Path(__file__).parents[1]

# About SQLite.
ONLY_SQLITE: Final = (
    "database/test_backup.py",
    "database/test_limits.py::test_short_statements_are_ended_together",
    "management/test_distribute_payments.py::test_sqlite_is_refused",
    "ingest/test_import_faults.py::test_error_within_a_python_function_of_sqlite_is_not_an_interrupt",
    "ingest/test_import_faults.py::test_full_disk_changes_nothing_and_is_reported_in_one_line",
    "ingest/test_import_faults.py::test_interrupt_within_a_python_function_of_sqlite_is_reported",
    "database/test_sqlite_faults.py",
    "database/test_sqlite_files.py",
    "database/test_search_index.py",
    "database/test_sqlite_plans.py",
    "management/test_failures.py::test_full_sqlite_database_leads_to_the_disk",
    "management/test_failures.py::test_file_that_is_no_database_leads_to_a_backup",
    "management/test_failures.py::test_locked_sqlite_database_leads_to_another_attempt",
    "database/test_statements.py::test_column_with_a_converter_is_refused",
)

# About PostgreSQL.
ONLY_POSTGRESQL: Final = (
    "test_anonymization.py::test_payments_that_another_process_writes_are_reported_and_the_others_anonymized",
    "access/test_authentication.py::test_revision_is_that_of_the_organization_and_mode",
    "access/test_authentication.py::test_revision_of_payments_that_never_changed_is_0",
    "access/test_authentication.py::test_revision_is_unknown_during_an_outage",
    "access/test_authentication.py::test_key_that_the_replica_lacks_is_searched_on_the_primary",
    "access/test_read_ahead.py",
    "api/test_feed_promises.py::test_clients_over_http_miss_nothing_while_six_write",
    "api/test_feed_promises.py::test_order_of_writing_breaks_the_promise",
    "api/test_revision_order.py",
    "access/test_authentication.py::test_replica_provides_keys_during_an_outage",
    "access/test_authentication.py::test_writing_a_use_restores_the_settings_of_the_transaction",
    "database/test_backup.py::test_command_on_postgresql_names_its_tools",
    "ingest/test_import_plans.py",
    "deploy/test_replica.py",
    "management/test_distribute_payments.py",
    "management/test_failures.py::test_connection_that_postgresql_ended_leads_to_the_server",
    "management/test_failures.py::test_sqlstate_of_postgresql_determines_the_next_step",
    "database/test_backends.py::test_connection_after_an_error_is_checked_only_outside_of_requests",
    "database/test_backends.py::test_connection_is_not_attempted_just_before_the_deadline",
    "database/test_backends.py::test_new_connection_has_the_limits_only_in_a_request",
    "database/test_backends.py::test_request_begins_with_a_check_of_the_connection",
    "database/test_backends.py::test_request_begins_without_an_old_or_changed_connection",
    "database/test_backends.py::test_values_of_binary_fields_are_written",
    "database/test_backends.py::test_usable_connection_is_recognized_without_a_query",
    "database/test_distribution.py",
    "ingest/test_recorded_changes.py::test_documented_sql_renews_the_revisions_of_all_payments",
    "test_concurrent_recording.py",
    "ingest/test_import_deadlock.py",
    "ingest/test_import_faults.py::test_fault_during_the_commit_is_reported_as_unknown_outcome",
    "ingest/test_import_faults.py::test_crash_of_the_server_leaves_all_or_nothing_and_is_reported_in_one_line",
    "ingest/test_imports.py::test_import_that_waits_for_a_lock_can_be_interrupted",
    "test_feed_plans.py",
    "test_list_plans.py",
    "deploy/test_operations.py",
    "database/test_poolers.py",
    "support/test_postgresql.py",
    "database/test_postgresql_faults.py",
    "database/test_pipeline.py",
    "database/test_prepared.py",
    "database/test_replicas.py",
    "runtime/test_servers.py::test_replica_with_unknown_lag_is_read_and_rarely_checked",
    "database/test_statements.py::test_connection_that_the_server_ended_is_replaced_before_use",
    "test_totals.py::test_key_can_be_created_while_a_day_is_summed",
)

# Independent of the database: they run once, on SQLite. A long run runs them on both.
ONCE_ON_SQLITE: Final = (
    "test_benchmarks.py",
    "api/test_feed_promises.py::test_missing_check_breaks_the_promise",
    "test_tokens.py",
    # Pages, documents and clients
    "browser",
    "docs/test_examples.py",
    "api/test_browsable.py",
    "admin/test_charts.py",
    "clients",
    "docs/test_pages.py",
    "docs/test_documents.py",
    "docs/test_messages.py",
    "management/test_help.py",
    "management/test_running.py",
    "api/test_negotiation.py",
    "api/test_parameters.py",
    "support/test_modules.py",
    "support/test_placement.py",
    "api/test_root.py",
    "api/test_openapi.py",
    "service/test_service.py::test_saved_pages_can_be_imported",
    "service/test_service.py::test_closed_pipe_ends_an_export_silently",
    "docs/test_synchronising.py",
    # The server, its settings and its deployment
    "service/test_bodies.py",
    "deploy/test_image.py",
    "deploy/test_proxies.py",
    "deploy/test_settings_file.py",
    "deploy/test_unit.py",
    "service/test_handler.py",
    "runtime/test_directory.py",
    "runtime/test_rate_limits.py",
    "runtime/test_shares.py",
    "runtime/test_circuit_breaker.py",
    "access/test_clients.py",
    "access/test_password_hasher.py",
    "admin/test_login.py",
    "service/test_logs.py",
    "api/test_hosts.py",
    "deploy/test_machine.py",
    "service/test_server.py",
    "service/test_static_files.py",
    "access/test_served_limits.py",
    "project",
    "access/test_throttling.py",
    "service/test_tracing.py",
    "runtime/test_database_errors.py",
    "runtime/test_deadlines.py",
    "runtime/test_hooks.py",
    # Wrong implementations, which a test must catch
    "api/test_filters.py::test_wrong_page_differs_from_the_reference",
    "ingest/test_import_faults.py::test_import_that_commits_every_batch_fails_the_check",
    "api/test_inputs.py::test_wrong_response_is_caught",
    "api/test_promises.py::test_wrong_page_breaks_a_promise",
    # Input, before it reaches the database
    "ingest/test_broken_files.py::test_program_that_reads_the_whole_file_exceeds_the_limit",
    "ingest/test_broken_files.py::test_file_that_would_fill_the_memory_is_refused_early",
    "ingest/test_card_canary.py",
    "ingest/test_card_data.py",
    "ingest/test_decoder_messages.py",
    "ingest/test_validation.py",
    "ingest/test_fast_path.py",
    "api/test_inputs.py::test_body_is_not_read_as_the_next_request",
    "api/test_inputs.py::test_any_header_gets_one_of_its_statuses",
    "api/test_inputs.py::test_any_path_leads_to_a_resource_or_a_404",
    "api/test_inputs.py::test_any_query_is_parsed_as_by_the_standard_library",
    "api/test_inputs.py::test_broken_http_is_refused_and_the_next_request_is_served",
    "api/test_inputs.py::test_corpus_gets_the_responses_of_the_contract_over_http",
    "api/test_inputs.py::test_any_path_leads_to_a_resource_or_a_404_over_http",
    "api/test_inputs.py::test_any_header_gets_one_of_its_statuses_over_http",
    "api/test_inputs.py::test_any_query_is_parsed_as_by_the_standard_library_over_http",
    "api/test_inputs.py::test_responses_match_the_openapi_document",
    "ingest/test_reading.py",
)

# Independent of the database: they run once, on PostgreSQL, so that both runs take about as long.
ONCE_ON_POSTGRESQL: Final = ("service/test_metrics.py",)

# About Citus.
ONLY_CITUS: Final = ("citus",)

# These modules also run on Citus: the contract of the list, and everything that writes or reads payments.
ALSO_CITUS: Final = (
    "access/test_authentication.py",
    "admin/test_downloads.py",
    "admin/test_emptiness.py",
    "admin/test_keys.py",
    "admin/test_list_totals.py",
    "admin/test_neighbours.py",
    "admin/test_organizations.py",
    "admin/test_overview.py",
    "admin/test_payment_reads.py",
    "admin/test_payments.py",
    "admin/test_preferences.py",
    "admin/test_saved_filters.py",
    "api/test_errors.py",
    "api/test_etags.py",
    "api/test_feed.py",
    "api/test_filters.py",
    "api/test_inputs.py::test_corpus_gets_the_responses_of_the_contract",
    "api/test_isolation.py",
    "api/test_list.py",
    "api/test_record.py",
    "api/test_responses.py",
    "api/test_revision_order.py",
    "ingest/test_import_deadlock.py",
    "ingest/test_imports.py",
    "management/test_commands.py",
    "test_anonymization.py",
    "test_listing.py",
    "test_totals.py",
)
ALSO_CITUS_IF_LONG: Final = (
    "access/test_read_ahead.py",
    "api/test_feed_promises.py",
    "api/test_polling.py",
    "api/test_promises.py",
)

# Tests of the tests; tests of a table in which IDs are unique, organizations of payments can change, and imports need
# no staging table; and a plan whose settings do not reach the workers, which may read a small shard as a whole.
NEVER_CITUS: Final = (
    "api/test_feed.py::test_payment_that_gets_another_organization_ends_the_epoch",
    "api/test_filters.py::test_wrong_page_differs_from_the_reference",
    "ingest/test_imports.py::test_all_kinds_of_errors_are_reported_in_one_run",
    "ingest/test_imports.py::test_payment_cannot_change_its_organization_within_a_file",
    "ingest/test_imports.py::test_payment_inserted_by_a_concurrent_import_is_updated",
    "ingest/test_imports.py::test_payment_of_another_organization_is_refused_and_unchanged",
    "test_anonymization.py::test_batch_is_read_along_the_index_of_the_list",
)

# A module that imports one of these names starts processes.
STARTERS: Final = ("subprocess", "run_command", "output_of", "breakable_postgresql", "empty_database", "fresh_database")

# The slowest modules. Each run begins with them.
FIRST: Final = (
    "database/test_replicas.py",
    "service/test_service.py",
    "browser",
    "database/test_poolers.py",
    "database/test_postgresql_faults.py",
    "service/test_metrics.py",
    "ingest/test_import_faults.py",
    "database/test_sqlite_faults.py",
    "service/test_server.py",
)


# One worker runs all modules of a group, so that their shared server starts once.
GROUPS: Final = {
    "browser": ("browser",),
    "service": (
        "service/test_service.py",
        "api/test_promises.py",
        "api/test_feed_promises.py",
        "api/test_inputs.py",
        "docs/test_examples.py",
        "api/test_browsable.py",
        "clients",
        "api/test_isolation.py",
        "api/test_root.py",
        "service/test_secrets.py",
        "docs/test_synchronising.py",
    ),
}


def path_of(item: pytest.Item) -> str:
    """Return the path of a test as entries write it: `browser/test_admin.py::test_key_is_added_used_and_revoked`."""
    return f"{item.path.relative_to(TESTS)}::{getattr(item, 'originalname', item.name)}"


def covers(entry: str, path: str) -> bool:
    return path == entry or path.startswith((f"{entry}::", f"{entry}/"))


def rank(path: str, entries: Iterable[str]) -> int | None:
    """Return the length of the longest entry that covers the path; None if no entry does."""
    return max((len(entry) for entry in entries if covers(entry, path)), default=None)


@cache
def databases(path: str) -> set[str]:
    """Return the databases on which a test runs."""
    if rank(path, ONLY_CITUS):
        return {"citus"}
    also_citus = ALSO_CITUS + ALSO_CITUS_IF_LONG if IS_LONG else ALSO_CITUS
    runs_on_citus = rank(path, also_citus) and not rank(path, NEVER_CITUS)
    return vendors(path) | ({"citus"} if runs_on_citus else set())


def vendors(path: str) -> set[str]:
    """Return whether a test runs on SQLite or PostgreSQL. An entry for the test overrides the entry for its module."""
    entries = {"sqlite": ONLY_SQLITE, "postgresql": ONLY_POSTGRESQL}
    if not IS_LONG:
        entries = {"sqlite": ONLY_SQLITE + ONCE_ON_SQLITE, "postgresql": ONLY_POSTGRESQL + ONCE_ON_POSTGRESQL}
    ranks = {vendor: rank(path, vendor_entries) for vendor, vendor_entries in entries.items()}
    highest = max((rank for rank in ranks.values() if rank is not None), default=None)
    return {vendor for vendor, rank in ranks.items() if rank == highest}


def runs_here(item: pytest.Item) -> bool:
    """Return whether the test runs on this database and in a run of this length."""
    database = "citus" if IS_CITUS else connection.vendor
    return database in databases(path_of(item)) and (IS_LONG or not item.get_closest_marker("long"))


def starts_processes(item: pytest.Item) -> bool:
    """Return whether the test starts programs or servers. The other tests pass in any order."""
    fixtures = getattr(item, "fixturenames", ())
    module = getattr(item, "module", None)
    return "service" in fixtures or "browser" in fixtures or any(hasattr(module, name) for name in STARTERS)


def sort_key(item: pytest.Item) -> int:
    """Return the sort key of a test: the slowest modules come first, the others keep their order."""
    return sort_key_of(path_of(item))


@cache
def sort_key_of(path: str) -> int:
    return next((rank for rank, entry in enumerate(FIRST) if covers(entry, path)), len(FIRST))


def group_of(module: str) -> str:
    """Return the group of a module. A module outside the groups is a group of its own."""
    return next((name for name, entries in GROUPS.items() if any(covers(entry, module) for entry in entries)), module)


def unknown_entries() -> Iterator[str]:
    """Yield the entries that name no existing module or test."""
    for entry in {
        *ONLY_SQLITE,
        *ONLY_POSTGRESQL,
        *ONCE_ON_SQLITE,
        *ONCE_ON_POSTGRESQL,
        *ONLY_CITUS,
        *ALSO_CITUS,
        *ALSO_CITUS_IF_LONG,
        *NEVER_CITUS,
        *FIRST,
        *chain(*GROUPS.values()),
    }:
        if not exists(entry):
            yield entry


def exists(entry: str) -> bool:
    """Return whether the module and the test of an entry exist."""
    module, _, function = entry.partition("::")
    path = TESTS / module
    return path.exists() and (not function or f"def {function}(" in path.read_text())
