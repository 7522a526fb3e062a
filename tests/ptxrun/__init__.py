"""Executes the PTX of a Triton kernel in numpy, all threads of a block at once, without a GPU.

text.py reads PTX; code.py binds each instruction to a function of arithmetic.py, transfers.py,
matrices.py or control.py; block.py runs the threads of a block; launched.py binds a `Launch`.

What no correct kernel does raises `Fault`: an access outside of tensors or shared memory, or one
that is not aligned; a deadlock, with who waits where; more arrivals at a barrier than it counts; a
register used while wgmma works on it; wgmma or TMA reading what no fence has published; and two
accesses of shared memory that nothing orders (races.py). What hardware may do at several moments
happens early, late or at random.

It reads PTX, not machine code: ptxas is trusted. exp2 and fused products are rounded better than on
hardware, denormals are kept, wgmma.fence is not checked, lanes of a warp count as ordered, and
tcgen05 (compute capability 10.0) is missing. It says nothing about time.
"""
