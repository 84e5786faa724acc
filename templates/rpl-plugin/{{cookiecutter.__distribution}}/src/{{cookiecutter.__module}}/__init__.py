"""{{ cookiecutter.summary | capitalize }}."""
