"""Run what nobody trusts with little to reach: no network, few files, bounded memory and output."""
