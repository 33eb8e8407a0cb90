"""Authentication, permissions and rate limits of the API."""
