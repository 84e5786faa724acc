"""AMD architectures for rpl: what holds for every product of one, without any product."""
