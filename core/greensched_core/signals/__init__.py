"""What the grid says: carbon and price by zone, dated, with a fallback for each."""
