"""The documentation pages under /docs/: rendered from the repository's Markdown, and Swagger UI."""
