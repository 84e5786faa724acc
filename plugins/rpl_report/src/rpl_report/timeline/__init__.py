"""The timeline of a run at every zoom level: what pictures draw, of bounded size however long the run."""
