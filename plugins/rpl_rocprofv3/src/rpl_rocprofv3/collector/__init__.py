"""Running an application under rocprofv3, one pass per directory, and keeping the files that it leaves."""
