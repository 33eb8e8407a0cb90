"""The database backend, where Django looks for it."""

import select

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    """Asks the server whether a connection still serves only where there is reason to: Django asks in every request."""

    def is_usable(self) -> bool:
        if self.connection is None or self.connection.closed or self.errors_occurred or self.has_unread_words():
            return super().is_usable()
        return True

    def has_unread_words(self) -> bool:
        """Tell whether the server has said something unasked, as it does when it ends, or ends a connection."""
        poll = select.poll()
        poll.register(self.connection.fileno(), select.POLLIN)
        return bool(poll.poll(0))

    def init_connection_state(self) -> None:
        """Have prepared statements planned once: whatever the values, the list is read along its index."""
        super().init_connection_state()
        with self.connection.cursor() as cursor:
            cursor.execute("SET plan_cache_mode = force_generic_plan")
