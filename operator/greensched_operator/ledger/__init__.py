"""The ledger: each decision as a record, in SQLite or PostgreSQL; without it decisions go on."""
