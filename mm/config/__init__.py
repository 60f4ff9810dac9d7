"""The configuration: what may be set, where it is read from, and which folders are trusted."""
