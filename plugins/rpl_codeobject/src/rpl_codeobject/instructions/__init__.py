"""The machine code of kernels: instructions, loops, packed arithmetic, what an edit changed."""
