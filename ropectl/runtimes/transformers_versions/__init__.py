"""How versions of transformers read a config: rules, what was run of them, and what the installed one builds."""
