"""Client libraries that nobody here wrote, walking the list unmodified: `python FILE BASE_URL KEY` prints the ids."""
