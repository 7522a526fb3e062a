"""The pack of audited kernels: their verdicts, what an SM holds of them, what limits them."""
