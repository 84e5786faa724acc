"""What plugins implement: strategies that choose configurations. Jobs are tasks of the core's executors."""
