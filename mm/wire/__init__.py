"""JSON-RPC with another program; knows no agent and no editor."""
