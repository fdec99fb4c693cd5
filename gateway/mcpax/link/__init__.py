"""Aggregator to aggregator: one WebSocket carries both directions of a parent and its child."""
