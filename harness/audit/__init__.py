"""What our Triton kernels compile to, without a GPU: registers, spills, instructions, occupancy.

The parent (run, pool) plans and keeps rows; its children (child, compiler) compile and read cubins.
Only children import Triton.
"""
