"""From a recording to the four documents."""
