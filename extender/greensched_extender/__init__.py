"""Answers kube-scheduler: which node costs the least energy, money and carbon."""
