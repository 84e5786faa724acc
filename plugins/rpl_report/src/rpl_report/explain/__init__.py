"""What ``rpl explain`` says about one kernel, one file per part."""
