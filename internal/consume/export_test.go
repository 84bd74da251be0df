package consume

// Window exposes window to tests, by offset instead of entry.
type Window struct {
	w    window
	open map[int64]*entry
}

// Add adds an offset that was read.
func (w *Window) Add(offset int64) {
	if w.open == nil {
		w.open = map[int64]*entry{}
	}
	w.open[offset] = w.w.add(offset)
}

// Finish records that an offset is handled.
func (w *Window) Finish(offset int64) (left int, next int64) { return w.w.finish(w.open[offset]) }
