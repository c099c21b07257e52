"""Numbers in prose: tokens, tables and sentences that are filled in from a run."""
