"""The personal graph: canonical keys, matching, ranking, decay, consolidation. In memory, pure."""
