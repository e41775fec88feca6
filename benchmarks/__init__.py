"""Benchmarks, not tests: they report figures with workload, machine and spread."""
