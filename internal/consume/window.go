package consume

// window holds the records of a partition that were read, beginning with the first that is not handled. Offsets may have
// gaps: transaction markers and compacted records.
type window struct{ open []*entry }

// entry is a record in a window.
type entry struct {
	offset int64
	done   bool
}

// add appends a record that was read. Offsets must increase.
func (w *window) add(offset int64) *entry {
	e := &entry{offset: offset}
	w.open = append(w.open, e)
	return e
}

// finish records that e is handled. It returns how many records left the window and the offset to commit: the one after
// the last of them.
func (w *window) finish(e *entry) (left int, next int64) {
	e.done = true
	for left < len(w.open) && w.open[left].done {
		next = w.open[left].offset + 1
		w.open[left] = nil
		left++
	}
	w.open = w.open[left:]
	return left, next
}
