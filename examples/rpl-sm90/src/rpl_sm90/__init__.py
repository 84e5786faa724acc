"""NVIDIA H100 and H200 for rpl: the devices, and a reader of what Nsight Systems exports."""
