"""Builds contexts: read, recall, pack into the budget, render. Contains the specification's memory manager."""
