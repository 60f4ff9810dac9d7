"""The model server: how to reach it, and how to read what it streams."""
