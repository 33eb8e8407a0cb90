"""The documentation pages under /docs/: rendered from the repository's Markdown, and Swagger UI.

views     URL -> view: the pages, their Markdown, Swagger UI, the OpenAPI document and the search index
pages     which Markdown files are pages, and the links between them
markdown  Markdown -> HTML
"""
