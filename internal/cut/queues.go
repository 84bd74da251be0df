package cut

import (
	"slices"

	"github.com/IBM/sarama"
)

// rowQueues order what one partition of the table sends to the changelog. Outputs are sent at once and are not queued.
//
//	EmitRow ------> held ----------> rows ------------+
//	   one entry per key,  linger    waits for the    |
//	   the newest row      or Seal   outputs and      |
//	                                 parts of its     |
//	                                 callbacks        |
//	                                                  |
//	EmitPart ----------------------> parts -----------+--> ready --> sender --> Sarama
//	   with a value                  waits only for   |
//	                                 earlier cuts     |
//	                                                  |
//	EmitPart ----------------------> deletions -------+
//	   nil                           waits until the
//	                                 callback's row is
//	                                 acknowledged
//
// Each queue is sent in order. The queues do not wait for one another within a cut: otherwise a partition would write only
// one of them per request. But the entries of a cut are sent before those of later cuts, across all queues: the offset of
// a cut's last record is the offset up to which the local store claims to have everything.
//
// A row is held, and replaced by newer rows of its key, until the linger has passed or the cut is made. A linger period
// therefore costs one batch of rows, with one row per session. Holding rows also keeps them from delaying later outputs:
// only one request is in flight, and outputs would wait for the answer to the row's request.
type rowQueues struct {
	partition int32
	callback  *barrier          // of the callback that runs, or ran last
	held      map[string]*entry // by key
	order     []*entry          // the held ones, in the order in which their keys were first written
	rows      []*entry          // also holds deletions that wait for no row
	parts     []*entry
	deletions []*entry
	// deleting counts the deletions of a row or a part, by its key, that are not acknowledged. EmitPart waits for them: a new
	// part does not wait for the rows and deletions before it, and might overtake the deletion of an older part of the same
	// number.
	deleting map[string]int
	// sequences are those that have unacknowledged outputs, by the key of their callbacks; sequence is that of the callback
	// that runs, nil for one whose outputs are sent at once.
	sequences map[string]*sequence
	sequence  *sequence
	// err is why an output of this partition was not written. No row is written after that: a later row of the same key
	// would hold the effects of the failed record, and prove outputs that are not in Kafka.
	err error
}

func newRowQueues(partition int32) *rowQueues {
	return &rowQueues{partition: partition, held: map[string]*entry{}, deleting: map[string]int{}}
}

// barrier counts acknowledgements that entries wait for: those of the outputs of one callback and the parts of its row, or
// that of one row.
type barrier struct {
	pending int
	row     *barrier // of the row that the callback has written, for which deletions of parts wait; nil: they do not wait
}

// entry is what a queue holds: a row of the table, a part, or deletions of the parts that a row no longer names.
type entry struct {
	msg       *sarama.ProducerMessage   // nil for deletions alone
	deletions []*sarama.ProducerMessage // of parts; sent after the row, since earlier rows in the changelog name the parts
	// waitsFor are the barriers of the callbacks whose effects the row holds: its own, and those whose rows it has replaced.
	waitsFor []*barrier
	first    [2]*barrier // the array of waitsFor, large enough for most rows
	written  barrier     // of the row itself, for the deletions behind it
	queues   *rowQueues
}

func (w *entry) waitFor(b *barrier) {
	if w.waitsFor == nil {
		w.waitsFor = w.first[:0]
	}
	w.waitsFor = append(w.waitsFor, b)
}

// ready reports whether everything that the entry waits for is acknowledged.
func (w *entry) ready() bool {
	w.waitsFor = slices.DeleteFunc(w.waitsFor, func(b *barrier) bool { return b.pending == 0 })
	return len(w.waitsFor) == 0
}

// cut returns the number of the cut that an entry belongs to.
func (w *entry) cut() int64 {
	msg := w.msg
	if msg == nil {
		msg = w.deletions[0]
	}
	return msg.Metadata.(*emitted).batch.cut
}

// mustFollow reports whether a queue has an entry of an earlier cut.
func (w *entry) mustFollow(queue []*entry) bool { return len(queue) > 0 && queue[0].cut() < w.cut() }

// releaseLocked moves the held rows to the queue of rows, where they wait for the outputs of their callbacks.
func (p *Producer) releaseLocked(r *rowQueues) {
	if len(r.order) == 0 {
		return
	}
	for _, w := range r.order {
		r.queueRow(w)
	}
	clear(r.held)
	clear(r.order)
	r.order = r.order[:0]
	p.advanceLocked(r)
}

// queueRow queues a row, and the deletions of its parts behind it.
func (r *rowQueues) queueRow(w *entry) {
	r.rows = append(r.rows, w)
	if len(w.deletions) > 0 {
		r.queueDeletions(r.newDeletions(w.deletions, w.msg.Metadata.(*emitted).barrier))
		w.deletions = nil
	}
}

// queueDeletions queues deletions. Those that wait for no row keep their place among the rows, after the parts of their cut.
func (r *rowQueues) queueDeletions(w *entry) {
	if len(w.waitsFor) == 0 {
		r.rows = append(r.rows, w)
		return
	}
	r.deletions = append(r.deletions, w)
}

// advanceLocked hands the sender what may be sent now, of all three queues.
func (p *Producer) advanceLocked(r *rowQueues) {
	moved := false
	for again := true; again; {
		parts := p.dequeueLocked(&r.parts, r.rows, r.deletions)
		rows := p.dequeueLocked(&r.rows, r.parts, r.deletions)
		deletions := p.dequeueLocked(&r.deletions, r.parts, r.rows)
		again = parts+rows+deletions > 0
		moved = moved || again
	}
	if !moved {
		return
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// dequeueLocked hands the sender the front of a queue, up to the first entry that must wait for a barrier or for an earlier
// cut in one of the other queues. It returns how many entries those are.
func (p *Producer) dequeueLocked(queue *[]*entry, one, other []*entry) (n int) {
	for _, w := range *queue {
		if !w.ready() || w.mustFollow(one) || w.mustFollow(other) {
			break
		}
		n++
		p.ready = append(p.ready, w)
	}
	if n > 0 {
		left := copy(*queue, (*queue)[n:])
		clear((*queue)[left:])
		*queue = (*queue)[:left]
	}
	return n
}
