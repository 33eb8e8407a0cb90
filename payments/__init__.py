"""A payment listing service: payments are imported, and an API lists them page by page.

docs/architecture.md has the list of the packages, and the path of a request, an import and a search through them.
"""

__version__ = "0.1.0"
