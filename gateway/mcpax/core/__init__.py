"""The aggregator: registry, catalog, router. Imports no transport and no web framework."""
