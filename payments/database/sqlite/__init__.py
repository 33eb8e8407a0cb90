"""Django's backend for SQLite, for a service that runs for long."""
