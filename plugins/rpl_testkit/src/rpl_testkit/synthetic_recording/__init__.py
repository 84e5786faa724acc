"""A small synthetic MI300X program, played on a model of its queues and written as a rocpd recording."""
