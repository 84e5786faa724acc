"""Keep the work of the chosen kind only."""

from pathlib import Path

OTHERS = {"check": "products.py", "device": "free_space.py"}

(Path("src") / "{{ cookiecutter.__module }}" / OTHERS["{{ cookiecutter.kind }}"]).unlink()
