"""mm, a coding agent for editors: one file, the standard library, a model on the user's own machine."""

__version__ = "0.1.0"
