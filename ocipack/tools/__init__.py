"""Programs that we run and do not write: each confined, with a clean environment and a time-out."""
