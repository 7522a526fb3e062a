"""What backends refuse, in a file for each, as far as it can be told without importing torch.

`discovery.loading.described` finds them by the backend's name. Of a device they read `type` alone.
"""
