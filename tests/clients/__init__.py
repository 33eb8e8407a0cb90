"""Programs that walk the list with unmodified client libraries: `python FILE BASE_URL KEY` prints the IDs."""
