"""The Agent Client Protocol."""
