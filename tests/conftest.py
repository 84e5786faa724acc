"""The fixtures come from rpl_testkit.pytest_plugin, which pytest finds by rpl-core's entry point."""
