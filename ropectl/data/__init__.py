"""Documents, tokens and passkey prompts: everything that is fed to a model."""
