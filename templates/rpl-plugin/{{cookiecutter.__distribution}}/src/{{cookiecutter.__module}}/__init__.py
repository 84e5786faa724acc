{% set said = cookiecutter.summary.rstrip(".") | replace("\\", "\\\\") | replace('"', '\\"') -%}
"""{{ said[:1] | upper }}{{ said[1:] }}."""
