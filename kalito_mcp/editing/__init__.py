"""Editing, forgetting, restoring and erasing records, and updating what was derived from them."""
