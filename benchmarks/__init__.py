"""What the service does in a second, beside peers that do the same, measured in turn on one machine.

__main__    arguments in; a table, and JSON, out
dataset     a million payments: most of one organization, many on one instant
database    a PostgreSQL for the occasion, filled by the project's own commands
servers     the service and its peers, as they would be deployed
peers/      stock DRF; FastAPI with asyncpg; raw WSGI, which is the limit
load        wrk, and what the processors did meanwhile
medians     what several rounds come to
pages       requests a second, latency and depth; what a page reads
memory      what a worker holds, before and after a hundred thousand requests
transfer    import and export
observing   what metrics and traces cost
filters     pages of some of the payments
indexes     what an index costs an import
admin       how long staff wait
replicas    what reading on replicas costs, and takes off the primary
routing     what the choice of a server costs a request
growth/     what the table takes and a page of it reads, whole and in partitions
"""
