"""A Django backend for SQLite with time limits for requests, and the backup of its file."""
