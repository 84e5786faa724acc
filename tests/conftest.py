"""The fixtures come from rpl_core.testing.pytest_plugin, which pytest finds by rpl-core's entry point."""
