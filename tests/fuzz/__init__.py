"""The mutating test of the wires: input as nobody means it, by the million. See
`dragoman.testing.hostile` for what is done with one; here are its seeds (the recordings), the run
over many, and what makes a finding small."""
