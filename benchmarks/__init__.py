"""Benchmarks of the service. All servers that are compared run on one machine and take turns.

__main__      the command line
options       options of the command line
database      databases for the benchmarks, loaded by the project's own commands
dataset       the payments: most belong to one organization, many share one timestamp
servers       the service and its peers, started as in production
peers/        stock DRF; FastAPI with asyncpg; raw WSGI, which is the upper limit
network       a network with an adjustable round trip between servers and PostgreSQL
delay_proxy   the process that delays its bytes
deployments   servers beside the database, and the same servers behind the network
load          runs wrk and measures processor time
medians       medians and ranges of several rounds
figures       medians of servers under load, compared with the service
plans         query plans and the buffers that they read
pages         requests per second, response time by depth, buffers of a page
not_modified  requests per second of 304 responses
round_trips   requests per second by the round trip to the database
threads       the service with other numbers of threads
memory        memory of a worker, before and after a hundred thousand requests
transfer      import and export
telemetry     cost of metrics and traces
filters       cost of filtered pages
indexes       cost of indexes for an import
admin         response times of the admin
replicas      cost of reading on replicas, and load that they take off the primary
routing       cost of choosing a server
settings/     other Django settings of the service, for comparison
changes/      the change feed: speed, plans, size and growth
growth/       size and speed of the table, whole and in partitions
"""
