"""Django's backend for PostgreSQL, for a service that runs for long."""
