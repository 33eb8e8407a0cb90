"""The list of payments and the change feed: filters, pages, and the statements that read them."""
