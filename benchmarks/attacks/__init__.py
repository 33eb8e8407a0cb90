"""Attacks on a running service: `benchmarks/attack`. Each prints what it tried, what happened, and pass or fail.

target      the service that is attacked, with its data, keys and users; another client, the victim
staff       look-ups and random requests in the admin by staff with few permissions
timing      what the time of a filter reveals
files       hostile import files and CSV exports
overload    floods that could delay other clients
"""
