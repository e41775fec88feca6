"""Environments to train in: the engine stops wherever an agent decides, and goes on as it says."""
