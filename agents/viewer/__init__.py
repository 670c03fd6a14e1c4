"""The page of a run: served on this machine while the run goes on, or written as one file."""
