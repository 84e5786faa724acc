"""From the rows of a file to a ``Trace``: the same for every format."""
