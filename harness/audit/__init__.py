"""What compilers made of our Triton kernels, without a GPU: registers, spills, shared memory,
instructions, and how much of it fits an SM.

The parent plans, keeps rows and prints; its children compile and read cubins. Triton is imported by
the children alone.
"""
