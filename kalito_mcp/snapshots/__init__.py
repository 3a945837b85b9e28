"""Snapshots of agents' graphs: a folder of JSON files, each with a name."""
