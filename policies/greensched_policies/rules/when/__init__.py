"""Rules that choose when a job starts."""
