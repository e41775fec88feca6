"""Code that all components share: units, clock, state, signals, settings, API access."""
