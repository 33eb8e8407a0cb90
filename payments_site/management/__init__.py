"""The command of the project."""
