"""Finding records: candidates from the indexes, evidence, order, hits. Reads only."""
