"""From facts to documents: pure translation, nothing is computed here."""
