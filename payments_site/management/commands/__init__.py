"""The machine's own commands of `manage.py`."""
