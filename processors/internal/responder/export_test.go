package responder

// WithLimit sets how many names are remembered for each partition.
func (x *Published) WithLimit(names int) *Published {
	x.limit = names
	return x
}
