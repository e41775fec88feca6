"""What every component shares: units, clock, state, signals, settings, the way to the API server."""
