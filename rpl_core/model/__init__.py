"""The values that flow through rpl: traces, devices, metrics, diagnostics.

Import from the module that holds the value; this package imports nothing, so that a plugin pays only
for what it uses.
"""
