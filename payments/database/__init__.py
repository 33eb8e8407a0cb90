"""Database access: the Django backends, and statements that are compiled and prepared once."""
