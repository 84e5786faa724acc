"""SQLite databases: recognising them, and reading columns from their pages without Python per row."""
