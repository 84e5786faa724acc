"""Whether another code object computes what the captured launch computed, by replays that could tell."""
