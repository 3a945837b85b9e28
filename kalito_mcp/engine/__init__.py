"""The memory manager: recording, scoring, summarising, and building contexts."""
