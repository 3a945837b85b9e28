"""Changing what is remembered: editing, forgetting, restoring, erasing, and bringing what was derived along."""
