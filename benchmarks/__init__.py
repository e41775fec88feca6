"""Benchmarks: figures with workload, machine and spread; not tests."""
