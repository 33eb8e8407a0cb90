"""What one process shares between its requests: database servers, deadlines, rate limits, instrumentation hooks."""
