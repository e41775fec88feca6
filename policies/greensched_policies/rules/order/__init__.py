"""Rules that choose which waiting job is next."""
