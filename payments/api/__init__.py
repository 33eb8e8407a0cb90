"""The HTTP API: two resources as HAL, their parameters, errors, and OpenAPI description."""
