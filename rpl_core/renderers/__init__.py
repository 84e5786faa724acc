"""Built-in renderers: documents in, text out."""
