"""What spans several services: finalizing a session, and the work that is owed in the background."""
