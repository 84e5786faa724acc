"""A HIP source file as a tree: parsing, kernels, macros, declarations, constants. Nothing here judges."""
