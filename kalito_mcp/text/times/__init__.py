"""Times in English words: from tokens to days, and from days to spans and dates."""
