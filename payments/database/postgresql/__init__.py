"""A Django backend for PostgreSQL with time limits for requests."""
