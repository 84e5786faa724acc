"""Waves are streamed once; each module here keeps one bounded summary of them."""
