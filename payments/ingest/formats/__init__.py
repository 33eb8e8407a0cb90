"""The formats of import files: CSV, JSON, and saved pages of the API."""
