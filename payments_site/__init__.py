"""The machine that the payments run on: settings, addresses, entry point. Nothing here knows what a payment is."""
