"""What `build_context` does: read, recall, pack into the budget, render. Home of the specification's memory manager."""
