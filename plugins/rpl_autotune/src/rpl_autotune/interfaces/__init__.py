"""What plugins implement: strategies that choose configurations, executors that have them measured."""
