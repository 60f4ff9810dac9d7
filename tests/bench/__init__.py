"""The benchmark: `python3 -m tests.bench`. Its measures are in measures.py, the two floors beside it."""
