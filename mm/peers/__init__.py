"""Programs that mm is a client of."""
