"""The demo: one workload started by default, placed by GreenSched and held by it; the bills."""
