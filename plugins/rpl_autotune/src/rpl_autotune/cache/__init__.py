"""What was measured, kept on disk; and the files of Kernel Tuner."""
