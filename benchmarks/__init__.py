"""Benchmarks of the service. All servers that are compared run on one machine and take turns.

__main__      the command line
options       sizes of the benchmarks
database      databases for the benchmarks, loaded by the commands of a checkout
dataset       the payments: most belong to one organization, many share one timestamp
servers       the service and its peers, started as in production
peers/        stock DRF; FastAPI with asyncpg; raw WSGI, which is the upper limit
network       a network with an adjustable round trip between servers and PostgreSQL
delay_proxy   the process that delays its bytes
load          runs wrk and measures processor time
figures       tables, medians and ratios of several rounds
pages         requests per second, 304 responses, response time by depth, buffers of a page
round_trips   requests per second by the round trip to the database
compare       the service of this checkout and of another one
memory        memory of a worker, before and after a hundred thousand requests
transfer      import and export
responses     response times of filtered pages and of the admin
sizes         bytes per payment of tables and indexes
attacks       attacks on the service: by load (attack_load) and by single requests (attack_requests) on attack_target
"""
