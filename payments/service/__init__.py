"""The WSGI application: request handling, health checks, logs and telemetry."""
