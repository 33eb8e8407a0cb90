"""How statements reach the database: the Django backends, and statements that are compiled and prepared once."""
