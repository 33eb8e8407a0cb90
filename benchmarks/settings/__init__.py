"""Other Django settings of the service, for comparison with its own."""
