"""A payment listing service: payments are imported, and an API lists them page by page.

docs/architecture.md has a drawing of the packages, and the path of a page, an import and a search through them.

api           the HTTP API: views, parameters, pagination, HAL, errors, links, OpenAPI
access        API keys and rate limits
ingest        the import: read, validate, write
admin         pages for staff
docs          the pages under /docs/
service       the WSGI application: requests, health checks, logs, metrics, traces
management    the commands of manage.py

listing       the list and the change feed: filters, pages, search terms, tokens, primary or replica
models        the tables, their fields, constraints, indexes and order
record        the fields of a payment record, declared once
rows          the database columns of a record, derived from its declaration
totals        daily totals
export, anonymization, demo
hal           the form of API documents

database      how statements run: Django backends and compiled statements
runtime       the state of one process: deadlines, circuit breakers, rate limits, hooks
conf          the settings, with their defaults
"""
