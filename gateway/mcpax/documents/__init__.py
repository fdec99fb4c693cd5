"""TOML files that people write: read with line numbers, held against a list of known keys, every fault told with its remedy."""
