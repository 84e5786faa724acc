"""``rpl demo`` and what it shares with ``make demo``: rpl's whole job on a program, without a GPU."""
