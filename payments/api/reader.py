"""Reads the API key of a request and the content of its response, if possible by one statement."""

from functools import partial

from django.db import OperationalError, connections
from django.utils.functional import cached_property

from payments.access.keys import AuthenticatedKey, DataOfKey, find_key, find_key_and_revision, key_guard, key_statement
from payments.access.throttling import is_over_limit
from payments.api.errors import QueryTimeout
from payments.conf import conf
from payments.database.workers import uses_citus
from payments.listing.content import Content, Query
from payments.listing.query import newest_payment_query
from payments.listing.routing import read_content, read_revision, server_for_lists
from payments.runtime.circuit_breaker import CircuitOpen
from payments.runtime.database_errors import is_timeout
from payments.runtime.servers import PRIMARY, has_replica


class Reader:
    """Reads for one request. `query` is for the content; None: the request is invalid, or needs no content.

    `is_conditional`: the client may know the content, which the revision shows.
    """

    def __init__(self, query: Query | None, *, is_conditional: bool) -> None:
        self.query = query
        self.is_conditional = is_conditional
        self.key: AuthenticatedKey | None = None
        self.content_with_key: Content | None = None
        self.reads_revision_apart = False
        self.errors: list[CircuitOpen] = []  # why the content cannot be read; at most one

    def find_key(self, digest: str) -> AuthenticatedKey | None:
        """Return the active key with this digest; None if there is none.

        On PostgreSQL, the same statement reads the content of a query without filters. If the revision may make the
        content unnecessary, or if the content may come from a replica, it reads the revision instead.
        """
        if self.query is None or (conf.RATE_LIMIT and is_over_limit(digest)):
            self.key = find_key(digest)
        else:
            self.key = self.find_key_with_more(self.query, digest)
        return self.key

    def find_key_with_more(self, query: Query, digest: str) -> AuthenticatedKey | None:
        """Return the key. Read the content or its revision by the same statement, if possible."""
        database, has_only_primary = connections[PRIMARY], not has_replica()
        needs_revision = self.is_conditional or not (has_only_primary or self.using == PRIMARY)
        # PostgreSQL plans a query with filters for its values, so it must know the access. With a replica, the key can
        # come from another server than the content.
        reads_content = has_only_primary and database.vendor == "postgresql" and not query.has_filters
        if not (needs_revision or reads_content):
            return find_key(digest)
        if uses_citus():  # it distributes payments, but not keys: no statement can read both
            self.reads_revision_apart = needs_revision
            return find_key(digest)
        try:
            return find_key_and_revision(digest) if needs_revision else self.read_with_key(query, digest)
        except CircuitOpen as error:
            self.errors.append(error.with_traceback(None))  # the traceback refers to this object
            return find_key(digest)

    def read_with_key(self, query: Query, digest: str) -> AuthenticatedKey | None:
        key_sql = key_statement().sql
        probe = partial(newest_payment_query().read_with_key, key_sql, digest)
        with key_guard(DataOfKey(digest, "payments"), probe=probe):
            content = self.content_with_key = query.read_with_key(key_sql, digest)
        end = content.end
        if end is None:
            return None
        return AuthenticatedKey.of(digest, end.key)

    @cached_property
    def using(self) -> str:
        """Return the alias of the server that the content is read from."""
        return server_for_lists() if has_replica() else PRIMARY

    @cached_property
    def revision(self) -> int | None:
        """Return the revision of the payments on the primary; None if it is not needed, or cannot be read."""
        if self.key and self.reads_revision_apart:
            return read_revision(self.key.access)
        return self.key and self.key.revision

    @cached_property
    def content(self) -> Content:
        """Return the content. For other errors, see `read_content`.

        :raises QueryTimeout: a query with filters exceeded its time limit
        """
        if self.content_with_key is not None:
            return self.content_with_key
        if self.errors:
            raise self.errors.pop()  # an exception that is raised refers to this object, which must not refer to it
        query, key = self.query, self.key
        if query is None or key is None:
            raise LookupError("Only a valid request with a key has content.")
        try:
            return read_content(query, key.access, using=self.using, revision=self.revision, client=key.digest)
        except OperationalError as error:
            if query.has_filters and is_timeout(error):
                raise QueryTimeout from error
            raise
