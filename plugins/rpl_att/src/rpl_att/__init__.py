"""AMD thread traces for rpl: what every instruction of a wave cost, and what it waited for."""
