"""Device maps: the one source for a board's tools, their types, limits and capability."""
