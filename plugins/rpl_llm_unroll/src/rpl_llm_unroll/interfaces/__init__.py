"""What plugins implement: clients, which ask a language model."""
