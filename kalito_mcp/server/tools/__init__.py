"""The tools, one file a noun. Each answers with text and structured content that state the same facts."""
