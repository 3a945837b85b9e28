"""The page: what is remembered, why it came up, and how to put it right. It reads without scripts."""
