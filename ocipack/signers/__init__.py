"""Where private keys are."""
