"""The device while it is measured: a sampler in a process of its own, what it reads, and the
parent's end of it.
"""
