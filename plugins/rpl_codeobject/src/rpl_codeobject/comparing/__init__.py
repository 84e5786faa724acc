"""Two builds of a program against each other: what breaks launches, and what costs more."""
