"""The documentation: the repository's own documents as pages, and the API to try.

urls      path -> view
pages     which documents are pages, and where links between them lead
markdown  a document -> HTML
views     a page, for whoever asks for it
"""
