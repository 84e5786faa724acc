"""Capturing one launch of a program: the native tool, what it reports, the folder that it writes."""
