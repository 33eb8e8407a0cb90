"""The management commands. They write data to stdout, and messages to stderr."""
