package consume

// window knows the records of a partition that were read, from the first that is not done on. Offsets may have gaps:
// transaction markers and compacted records.
type window struct{ open []*entry }

// entry is a record in a window.
type entry struct {
	offset int64
	done   bool
}

// add takes a record that was read. Offsets only grow.
func (w *window) add(offset int64) *entry {
	e := &entry{offset: offset}
	w.open = append(w.open, e)
	return e
}

// finish says that a record is done. It returns how many records left the window, and where a reader that comes after
// goes on: behind the last of them.
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
