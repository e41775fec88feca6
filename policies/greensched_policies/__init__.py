"""What to prefer: the cost of a candidate, its encoding, rules, models and their guard."""
