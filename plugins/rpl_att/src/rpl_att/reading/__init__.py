"""The files of a decoded thread trace, each read by the module that is named after it."""
