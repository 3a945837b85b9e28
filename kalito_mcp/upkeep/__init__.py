"""Background work, and closing a session."""
