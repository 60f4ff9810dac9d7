"""Who the turn talks to."""
