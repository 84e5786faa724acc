"""From facts to the four documents: pure translation, nothing is computed here."""
