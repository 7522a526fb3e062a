"""What attnbench can be asked: each verb a request, whose fields are its options, and functions."""
