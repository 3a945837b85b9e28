"""How this process works: for whom, in which thread, and where a test may kill it."""
