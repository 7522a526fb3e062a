"""The device over time: a sampler process, what it reads, and the parent's end of it."""
