"""The JSON files of the autotuner as pydantic models: the space file and `autotune.json`."""
