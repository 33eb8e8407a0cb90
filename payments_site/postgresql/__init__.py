"""Django's PostgreSQL, with a cheaper way to notice that a connection has died."""
