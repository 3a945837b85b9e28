"""Language: words and index terms, spelling, sentences, code blocks, and times in words."""
