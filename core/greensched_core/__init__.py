"""What every component shares: units, clock, state, signals, settings, API access."""
