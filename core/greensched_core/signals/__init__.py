"""Signals of the grid: carbon and price by zone with their age, and a fallback for each."""
