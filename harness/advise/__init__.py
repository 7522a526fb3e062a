"""The pack that answers which attention a model should use."""
