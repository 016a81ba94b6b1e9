"""The machine room: compilation, vector registers, addresses, random streams, and the kernels that are made of them."""
