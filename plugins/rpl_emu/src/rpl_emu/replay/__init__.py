"""Captured launches in the emulator: without a GPU and without a runtime."""
