"""Apply and list source transformations of plugins. The plugins propose; this package checks and edits."""
