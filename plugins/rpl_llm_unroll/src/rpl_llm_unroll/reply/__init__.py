"""Replies of a language model as data: one kernel in one fenced block, or a problem in one sentence."""
