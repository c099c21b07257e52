"""What a run must be before its numbers may be shown; publishing, locking, comparing a rerun with it."""
