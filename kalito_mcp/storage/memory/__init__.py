"""A memory that is kept in this process alone."""
