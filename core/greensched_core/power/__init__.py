"""What machines draw: curves, a catalogue of hardware, and measured watts."""
