"""Studies of this pack, each a file."""
