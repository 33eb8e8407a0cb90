"""What a request reads: its key, the revision of its payments and its content, if possible in one round trip."""

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from django.utils.functional import cached_property

from payments.access.keys import AuthenticatedKey
from payments.admission import run_admitted
from payments.database.round_trips import NOTHING, Query, ReadAhead, can_pipeline
from payments.filters import Selection
from payments.listing import Listing
from payments.models import Access
from payments.routing import read_revision, revision_query, server_for_lists
from payments.runtime.process import process
from payments.runtime.servers import PRIMARY, has_replica


class ContentReads(Protocol):
    """What the content of a response needs."""

    @property
    def selection(self) -> Selection:
        """Return the filters and the order of the list."""

    @property
    def is_valid(self) -> bool:
        """Return whether the parameters of the request are valid. If not, nothing is read."""

    def queries_for(self, access: Access) -> Sequence[Query]:
        """Return the queries of a valid request."""


class RequestReads:
    """The reads of one request. `can_skip_content`: the revision may make the content unnecessary."""

    def __init__(self, content: ContentReads, *, can_skip_content: bool) -> None:
        self.content = content
        self.can_skip_content = can_skip_content
        self.has_replica = has_replica()

    @cached_property
    def using(self) -> str:
        """Return the server that the content is read from."""
        return server_for_lists()

    @property
    def needs_revision(self) -> bool:
        """Return whether the revision is read before the content: to skip it, or to compare it with a replica's."""
        return self.can_skip_content or (self.has_replica and self.using != PRIMARY)

    def queries_for(self, access: Access) -> Sequence[Query]:
        """Return the queries for the primary."""
        if not self.content.is_valid:
            return []
        return [revision_query(access)] if self.needs_revision else self.content.queries_for(access)

    def listing(self, key: AuthenticatedKey, *, client: str) -> Listing:
        """Return the list that the client asks for, with its revision if it is needed.

        :raises Error: the revision cannot be read, and there is no replica
        """
        read_ahead = self.read_ahead(key, client) if key.is_from_primary else None
        revision = read_revision(key.access, read_ahead) if read_ahead and self.needs_revision else None
        using = self.using if self.has_replica else PRIMARY
        return Listing(
            key.access,
            self.content.selection,
            using=using,
            revision=revision,
            read_ahead=read_ahead or NOTHING,
            client=client,
        )

    def read_ahead(self, key: AuthenticatedKey, client: str) -> ReadAhead | None:
        """Return what has been read with the key, or read it; None if the primary has just failed."""
        if key.read_ahead.queries:
            return key.read_ahead
        read = partial(self.read, key.access, client)
        return process.primary.run(lambda _alias: read()) if self.has_replica else read()

    def read(self, access: Access, client: str) -> ReadAhead:
        """Read in one round trip what has not been read with the key."""
        queries = self.queries_for(access)
        if not queries or not can_pipeline():
            return NOTHING
        return ReadAhead(queries, run_admitted(access, queries, client=client))
