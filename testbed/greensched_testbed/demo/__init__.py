"""The demo: one workload, placed by the default scheduler and by GreenSched, and both bills."""
