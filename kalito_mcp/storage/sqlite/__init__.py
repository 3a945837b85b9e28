"""The embedded store: one SQLite file, shared by any number of processes."""
