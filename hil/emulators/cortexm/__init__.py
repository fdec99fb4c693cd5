"""A Cortex-M0+ processor, for any chip to be built around."""
