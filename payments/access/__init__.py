"""Who may use the API, and how often."""
