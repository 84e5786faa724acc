"""Measuring one configuration: build, validate, time; what goes wrong is an answer, too."""
