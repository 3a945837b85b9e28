"""The page: what is remembered, why it came up, and how to put it right. HTML from the server; it reads without scripts."""
