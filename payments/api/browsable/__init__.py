"""The API as pages for browsers, in development only."""
