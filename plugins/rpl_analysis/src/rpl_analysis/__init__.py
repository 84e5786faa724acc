"""Runtime, occupancy, counters, roofline, execution graph, bottleneck labels, and the four documents."""
