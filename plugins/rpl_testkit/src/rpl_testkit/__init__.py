"""Test kit for plugin authors: a pytest plugin with fixtures, and contract checks per kind of plugin.

pytest loads ``rpl_testkit.pytest_plugin`` by itself wherever rpl-core is installed. The contract checks
are plain functions in ``rpl_testkit.contracts``.
"""
