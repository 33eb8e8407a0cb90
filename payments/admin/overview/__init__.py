"""The start page of the admin: the figures of a period."""
