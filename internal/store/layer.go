package store

// row is what was written for a key.
type row struct {
	value []byte // nil: the key was deleted
	due   int64  // the deadline, where timed
	timed bool
}

// layer is what was written since a cut.
type layer struct {
	rows   map[string]row
	bytes  int   // of keys and values
	offset int64 // of the changelog that rows are covered by; noOffset: none
}

const noOffset = -1

func newLayer() *layer { return &layer{rows: map[string]row{}, offset: noOffset} }

// reset empties a layer for the next cut.
func (l *layer) reset() {
	clear(l.rows)
	l.bytes, l.offset = 0, noOffset
}

func (l *layer) put(key string, r row) {
	if old, ok := l.rows[key]; ok {
		l.bytes -= len(key) + len(old.value)
	}
	l.rows[key] = r
	l.bytes += len(key) + len(r.value)
}

// take puts what a later layer has over what is here.
func (l *layer) take(later *layer) {
	for key, r := range later.rows {
		l.put(key, r)
	}
	l.offset = max(l.offset, later.offset)
}

func (l *layer) empty() bool { return len(l.rows) == 0 && l.offset == noOffset }

// full reports whether committed rows should be written now, n times the ordinary size of a batch being reached.
func (l *layer) full(n int) bool { return len(l.rows) >= n*batchRows || l.bytes >= n*batchBytes }

const (
	batchRows  = 1000
	batchBytes = 1 << 20
	// recycledRows is the largest layer that is used again: a map never shrinks, and clearing a large one for a cut of
	// one row would cost more than a new one.
	recycledRows = 128
)
