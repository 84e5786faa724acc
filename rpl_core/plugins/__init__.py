"""The plugin host: find plugins, load each inside its own error boundary, and dispatch typed hooks.

``importlib.metadata`` says what is installed, stevedore loads one plugin, pluggy knows who implements
which hook. Start at ``rpl_core.plugins.host.create_host``; this package imports nothing by itself.
"""
