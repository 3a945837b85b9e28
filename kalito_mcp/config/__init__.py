"""What is configured, and where that is written."""
