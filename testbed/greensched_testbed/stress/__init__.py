"""Stress benchmark: runs the same fixed work under several strategies on any cluster."""
