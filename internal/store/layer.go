package store

// row is what was written for a key.
type row struct {
	value []byte // nil: the key was deleted
	due   int64  // the deadline, where timed
	timed bool
}

// layer holds what was written since a cut.
type layer struct {
	rows   map[string]row
	bytes  int   // of keys and values
	offset int64 // the changelog offset that covers the rows; noOffset: none
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

// take applies a later layer to this one.
func (l *layer) take(later *layer) {
	for key, r := range later.rows {
		l.put(key, r)
	}
	l.offset = max(l.offset, later.offset)
}

func (l *layer) empty() bool { return len(l.rows) == 0 && l.offset == noOffset }

// full reports whether the layer has reached n times the size of a batch, so that committed rows should be written now.
func (l *layer) full(n int) bool { return len(l.rows) >= n*batchRows || l.bytes >= n*batchBytes }

const (
	batchRows  = 1000
	batchBytes = 1 << 20
	// recycledRows is the number of rows of the largest layer that is reused: a map never shrinks, and clearing a large one
	// for a cut of one row would cost more than a new one.
	recycledRows = 128
)
