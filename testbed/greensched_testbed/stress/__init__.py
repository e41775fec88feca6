"""Stress Jobs: the same fixed work under several strategies on any cluster, and what it took."""
