"""Ask a language model: settings, budget, secrets, the network, and the record of every exchange."""
