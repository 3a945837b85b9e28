"""Keeps the vectors of records in Qdrant. The records themselves, and what is owed a vector, stay in SQL."""
