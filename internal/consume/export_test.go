package consume

// Window is the window without its entries, for tests.
type Window struct {
	w    window
	open map[int64]*entry
}

// Add takes an offset that was read.
func (w *Window) Add(offset int64) {
	if w.open == nil {
		w.open = map[int64]*entry{}
	}
	w.open[offset] = w.w.add(offset)
}

// Finish says that an offset is done.
func (w *Window) Finish(offset int64) (left int, next int64) { return w.w.finish(w.open[offset]) }
