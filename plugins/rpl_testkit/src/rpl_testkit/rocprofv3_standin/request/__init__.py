"""What the command line asks for: options, input files, passes, which launches are counted."""
