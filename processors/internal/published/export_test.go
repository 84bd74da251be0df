package published

// WithLimit sets how many names are remembered for each partition.
func (x *Index) WithLimit(names int) *Index {
	x.limit = names
	return x
}
