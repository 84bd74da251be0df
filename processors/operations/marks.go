package operations

import (
	"maps"
	"slices"
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// Marks are the records of a dead-letter topic that say which letters were written back. Use NewMarks. It is not safe for concurrent
// use.
type Marks struct {
	bySource map[Place][]mark
	byID     map[string][]mark // by turntable.id
	written  map[string]mark   // by the places of the records that were written back
}

type mark struct {
	at        time.Time
	partition int32
	offset    int64
}

// NewMarks returns no marks.
func NewMarks() Marks { return Marks{map[Place][]mark{}, map[string][]mark{}, map[string]mark{}} }

// Add adds a mark.
func (m Marks) Add(r processors.Inbound) {
	this := mark{r.Timestamp, r.Partition, r.Offset}
	m.written[string(r.Value)] = this
	if source, ok := sourceOf(r); ok {
		m.bySource[source] = append(m.bySource[source], this)
	}
	if id := r.Header(topics.HeaderID); len(id) > 0 {
		m.byID[string(id)] = append(m.byID[string(id)], this)
	}
}

// after reports whether the mark is later than a letter. It is in the partition of its own letter; copies with another key may be in
// another one, where only the times tell.
func (k mark) after(l *Letter) bool {
	if k.partition == l.Partition {
		return k.offset > l.Offset
	}
	return !k.at.Before(l.at)
}

// Of returns when the record of a letter was written back, "" if it was not. A letter is done if its record was written back later, or
// a copy of it with the same turntable.id. A letter that is later than the mark is not done: the record has failed again, or another
// one has its place, because its topic was deleted and created again.
func (m Marks) Of(l *Letter) string {
	for _, known := range [][]mark{m.bySource[l.Source], m.byID[string(l.headers.Header(topics.HeaderID))]} {
		if i := slices.IndexFunc(known, func(k mark) bool { return k.after(l) }); i >= 0 {
			return topics.Timestamp(known[i].at)
		}
	}
	return ""
}

// Judge sets the RequeuedAt and FailedAgain of a letter, as far as its place and ID tell.
func (m Marks) Judge(l *Letter) {
	l.RequeuedAt = m.Of(l)
	l.FailedAgain = l.RequeuedAt == "" && (len(m.bySource[l.Source]) > 0 ||
		len(m.byID[string(l.headers.Header(topics.HeaderID))]) > 0 || m.isWritten(l.Source))
}

func (m Marks) isWritten(p Place) bool {
	_, ok := m.written[p.String()]
	return ok
}

// Forget drops the marks of a partition before an offset: when the topic has lost them by age, it has lost their letters too.
func (m Marks) Forget(partition int32, before int64) {
	lost := func(k mark) bool { return k.partition == partition && k.offset < before }
	forget(m.bySource, lost)
	forget(m.byID, lost)
	maps.DeleteFunc(m.written, func(_ string, k mark) bool { return lost(k) })
}

func forget[K comparable](marks map[K][]mark, lost func(mark) bool) {
	for k, list := range marks {
		if list = slices.DeleteFunc(list, lost); len(list) == 0 {
			delete(marks, k)
		} else {
			marks[k] = list
		}
	}
}
