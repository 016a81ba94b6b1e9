"""The machine room: compilation, vector registers, addresses and random streams; the only package that sees them."""
