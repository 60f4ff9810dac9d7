"""One turn."""
