"""What a request reads: its key, the revision of its payments and its content, if possible in one round trip."""

from collections.abc import Callable, Sequence

from django.utils.functional import cached_property

from payments.access.keys import AuthenticatedKey
from payments.admission import run_admitted
from payments.database.round_trips import NOTHING, Query, ReadAhead, pipelined_statements
from payments.listing import Listing
from payments.models import Access
from payments.routing import read_revision, revision_query, server_for_lists
from payments.runtime.process import process
from payments.runtime.servers import PRIMARY, has_replica


class RequestReads:
    """The reads of one request.

    `content_queries` returns the queries of the content, or none if the request is invalid. `can_skip_content`: the
    revision may make the content unnecessary.
    """

    def __init__(self, content_queries: Callable[[Access], Sequence[Query]], *, can_skip_content: bool) -> None:
        self.content_queries = content_queries
        self.can_skip_content = can_skip_content

    @cached_property
    def using(self) -> str:
        """Return the server that the content is read from."""
        return server_for_lists()

    @property
    def needs_revision(self) -> bool:
        """Return whether the revision is read before the content: to skip it, or to compare it with a replica's."""
        return self.can_skip_content or self.using != PRIMARY

    def queries_for(self, access: Access) -> Sequence[Query]:
        """Return the queries for the primary."""
        content = self.content_queries(access)
        return [revision_query(access)] if content and self.needs_revision else content

    def listing(self, key: AuthenticatedKey) -> Listing:
        """Return the list of all payments that the key gives access to, with its revision if it is needed.

        :raises Error: the revision cannot be read, and there is no replica
        """
        listing = Listing(key.access, using=self.using, needs_admission=True)
        if not key.is_from_primary:
            return listing
        read_ahead = key.read_ahead if key.read_ahead.queries else self.read_on_primary(key.access)
        if read_ahead is None:
            return listing
        revision = read_revision(key.access, read_ahead) if self.needs_revision else None
        return listing._replace(revision=revision, read_ahead=read_ahead)

    def read_on_primary(self, access: Access) -> ReadAhead | None:
        """Return what has not been read with the key; None if the primary has just failed and there is a replica."""
        return process.primary.run(lambda _alias: self.read(access)) if has_replica() else self.read(access)

    def read(self, access: Access) -> ReadAhead:
        """Read in one round trip what has not been read with the key."""
        queries = self.queries_for(access)
        if not queries or (statements := pipelined_statements()) is None:
            return NOTHING
        return ReadAhead(queries, run_admitted(statements, access, queries))
