"""Aggregator to aggregator: how a child and its parent reach, recognise and trust each other. The core knows nothing of it."""
