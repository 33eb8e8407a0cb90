"""The state of one process: hooks, deadlines, circuit breakers and rate limits. Only `process.py` creates it."""
