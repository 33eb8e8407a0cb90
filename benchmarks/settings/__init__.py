"""Other settings of the service, each to be measured beside its own."""
