"""Procedures that the model reads when a task calls for one."""
