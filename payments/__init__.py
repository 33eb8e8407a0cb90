"""A payment listing service: payments are imported, and an API lists them page by page.

docs/architecture.md has a drawing of the packages, and the path of a request, an import and a setting through them.

api           the HTTP API: URLs, views, parameters, pagination, HAL, errors, OpenAPI
access        API keys and rate limits
ingest        the import: read, validate, write
admin         pages for staff
docs          the pages under /docs/
service       the WSGI application: requests, health checks, logs, metrics, traces
management    the commands of manage.py

models        the tables, their constraints and indexes
record        the fields of a payment record, declared once
rows          the database columns of a record, derived from its declaration
filters       the filters of a list and the parameters that select them   (filter_types: their types)
listing       the query of a list                                         (ordering, expressions: its SQL)
page          one page of a list                                          (routing: primary or replica)
totals        daily totals                                                (changes: revisions and totals after a change)
export, anonymization, demo
links, hal    the URLs and the form of API documents
fields, identifiers, api_keys, currencies

database      how statements run: Django backends, compiled and prepared statements
runtime       the state of one process: deadlines, circuit breakers, rate limits, hooks
"""
