"""Sessions as text: played, recorded, and compared."""
