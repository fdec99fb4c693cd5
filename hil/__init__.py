"""The rig: emulated and real boards, leased, flashed and exercised by tests."""
