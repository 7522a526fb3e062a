"""What heads learn: pages and claims on training studies. A pack: the core knows nothing of it."""
