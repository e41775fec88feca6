"""The demo: bills of one workload by the default scheduler, placed, and also held."""
