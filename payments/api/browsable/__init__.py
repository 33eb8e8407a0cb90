"""The API as pages to click through, in development alone: a way in for a browser, and what a page shows."""
