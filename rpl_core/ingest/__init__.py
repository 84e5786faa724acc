"""From paths to a recording: which files belong together, who reads them, what they stand for."""
