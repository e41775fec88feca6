"""Power of machines: curves, a catalogue of hardware, and measured watts."""
