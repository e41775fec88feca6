"""Holds work for a cleaner, cheaper window, frees it in time, and publishes grid signals."""
