"""What texts state about things, and which of two statements stands. Pure."""
