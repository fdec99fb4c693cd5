"""The wire format of docs/wire-format.md: framing below, messages above, no I/O anywhere."""
