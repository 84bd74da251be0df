package cut

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// broker takes what is sent, and acknowledges it when the test says so: the table in order, outputs in any.
type broker struct {
	*line
	mu      sync.Mutex
	table   []*sarama.ProducerMessage
	acked   int
	outputs []*sarama.ProducerMessage
	log     []string // what the table has, and "out" where an output was acknowledged
	cuts    []int64
	refuse  int // the number of the table's record that is refused, from 1; 0: none
}

func (b *broker) run() {
	for m := range b.in {
		b.mu.Lock()
		if m.Topic == "table" {
			m.Offset = int64(len(b.table))
			b.table = append(b.table, m)
			if len(b.table) != b.refuse {
				b.log = append(b.log, keyOf(m)+"="+text(m))
			} else {
				b.log = append(b.log, "refused")
			}
			b.cuts = append(b.cuts, m.Metadata.(*emitted).batch.cut)
		} else {
			b.outputs = append(b.outputs, m)
		}
		b.mu.Unlock()
	}
}

// ackOne acknowledges one record, if there is any.
func (b *broker) ackOne(table bool, n int) bool {
	b.mu.Lock()
	var m *sarama.ProducerMessage
	switch {
	case table && b.acked < len(b.table):
		m = b.table[b.acked]
		b.acked++
	case !table && len(b.outputs) > 0:
		n %= len(b.outputs)
		m = b.outputs[n]
		b.outputs = append(b.outputs[:n:n], b.outputs[n+1:]...)
	}
	refused := table && b.acked == b.refuse
	b.mu.Unlock()
	if m == nil {
		return false
	}
	if refused {
		b.errs <- &sarama.ProducerError{Msg: m, Err: sarama.ErrNotEnoughReplicas}
		return true
	}
	b.done <- m
	return true
}

// For any order of acknowledgements, each prefix of the changelog has all parts that its rows name, the cuts are in order,
// and no unused part is left at the end.
func TestEachPrefixOfTheChangelogHasThePartsOfItsRows(t *testing.T) {
	for name, c := range map[string]struct{ ordered, refusals bool }{
		"at least once": {true, false}, "exactly once": {false, false}, "a record is refused": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := newPartWriter(t, c.ordered, c.refusals)
				defer func() { require.NoError(t, w.p.Close()); close(w.b.in) }()
				for range rapid.IntRange(1, 40).Draw(t, "moves") {
					w.move(t)
				}
				w.settling = append(w.settling, w.p.Seal())
				w.finish(t)
				w.checkPrefixes(t)
			})
		})
	}
}

// partWriter is a producer, its broker, and what the producer's callbacks have written.
type partWriter struct {
	ordered, refusals bool

	b        *broker
	p        *Producer
	offsets  []int64          // given to Stored
	rows     map[string][]int // the numbers of the parts that a key's row names
	next     map[string]int   // the next number of a key
	settling []Settling
}

func newPartWriter(t *rapid.T, ordered, refusals bool) *partWriter {
	w := &partWriter{ordered: ordered, refusals: refusals, rows: map[string][]int{}, next: map[string]int{}}
	w.b = &broker{line: &line{
		in:   make(chan *sarama.ProducerMessage, 100),
		done: make(chan *sarama.ProducerMessage), errs: make(chan *sarama.ProducerError),
	}}
	if refusals {
		w.b.refuse = rapid.IntRange(1, 20).Draw(t, "refuse")
	}
	go w.b.run()
	w.p = NewProducer(w.b.line, ProducerOptions{
		Table: "table", Ordered: ordered,
		Linger: rapid.SampledFrom([]time.Duration{0, 50 * time.Microsecond}).Draw(t, "linger"),
		Failed: func(error) {}, Broken: func(error) {},
		Stored: func(_ int32, o int64, _ bool) error { w.offsets = append(w.offsets, o); return nil },
	})
	return w
}

// move seals a cut, acknowledges a record, lets other goroutines run, or runs a callback.
func (w *partWriter) move(t *rapid.T) {
	switch rapid.IntRange(0, 6).Draw(t, "move") {
	case 0:
		w.settling = append(w.settling, w.p.Seal())
		if !w.ordered {
			w.finish(t)
		}
	case 1:
		w.b.ackOne(true, 0)
	case 2:
		w.b.ackOne(false, rapid.IntRange(0, 5).Draw(t, "which"))
	case 3:
		runtime.Gosched() // let the sender and the linger run
	default:
		w.callback(t)
	}
}

// finish acknowledges records until the rows of all sealed cuts are settled.
func (w *partWriter) finish(t *rapid.T) {
	deadline := time.Now().Add(testTimeout)
	for _, s := range w.settling {
		for settled := false; !settled; {
			select {
			case <-s.Done():
				require.True(t, w.refusals || s.Err() == nil)
				settled = true
			default:
				if !w.b.ackOne(true, 0) && !w.b.ackOne(false, 0) {
					runtime.Gosched()
				}
				require.True(t, time.Now().Before(deadline), "stuck")
			}
		}
	}
	w.settling = nil
}

// callback runs one callback to its end. It acknowledges records while the callback waits for deletions.
func (w *partWriter) callback(t *rapid.T) {
	key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")
	w.p.Begin(0, key)
	adds, outs := rapid.IntRange(0, 2).Draw(t, "adds"), rapid.IntRange(0, 1).Draw(t, "outs")
	leaves := rapid.IntRange(0, 5).Draw(t, "leaves") == 0
	drops := rapid.IntRange(0, 2).Draw(t, "drops")
	ended := make(chan error, 1)
	go func() {
		if leaves {
			ended <- w.write(key, 0, outs, len(w.rows[key]), true)
			return
		}
		ended <- w.write(key, adds, outs, drops, false)
	}()
	deadline := time.Now().Add(testTimeout)
	for {
		select {
		case err := <-ended:
			require.True(t, w.refusals || err == nil)
			return
		case <-time.After(2 * time.Millisecond):
			if !w.b.ackOne(true, 0) {
				w.b.ackOne(false, 0)
			}
			require.True(t, time.Now().Before(deadline), "a callback hangs")
		}
	}
}

// write adds parts to the row of a key, sends outputs, and drops the oldest parts; leaves deletes the row.
func (w *partWriter) write(key string, adds, outs, drops int, leaves bool) error {
	var gone []int
	for range min(drops, len(w.rows[key])) {
		gone, w.rows[key] = append(gone, w.rows[key][0]), w.rows[key][1:]
	}
	for range adds {
		n := w.next[key]
		w.next[key]++
		if err := w.p.EmitPart(0, runtimeapi.PartKey(key, uint32(n)), []byte("p")); err != nil {
			return err
		}
		w.rows[key] = append(w.rows[key], n)
	}
	for range outs {
		e := newEmitted("out", key, []byte("o"))
		e.waiter = promised(func(error) {})
		w.p.emitOutput(0, e)
	}
	var raw []byte
	if leaves {
		w.rows[key], w.next[key] = nil, 0 // the numbers are used again
	} else {
		raw = rowOf(w.rows[key])
	}
	if err := w.p.EmitRow(0, key, raw, nil); err != nil {
		return err
	}
	for _, n := range gone {
		if err := w.p.EmitPart(0, runtimeapi.PartKey(key, uint32(n)), nil); err != nil {
			return err
		}
	}
	return nil
}

// rowOf returns a row that names parts.
func rowOf(parts []int) []byte { return []byte("r" + strings.Trim(fmt.Sprint(parts), "[]")) }

// checkPrefixes checks each prefix of the changelog and, if no record was refused, that its end is what was written.
func (w *partWriter) checkPrefixes(t *rapid.T) {
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	have := map[string]string{}
	for i, l := range w.b.log {
		key, value, _ := strings.Cut(l, "=")
		have[key] = value
		if value == "" {
			delete(have, key)
		}
		if i > 0 {
			require.GreaterOrEqual(t, w.b.cuts[i], w.b.cuts[i-1], "cuts follow one another: %q", w.b.log)
		}
		for k, v := range have {
			if runtimeapi.IsPart(k) {
				continue
			}
			for _, n := range strings.Fields(v[1:]) {
				number, _ := strconv.Atoi(n)
				require.Contains(t, have, runtimeapi.PartKey(k, uint32(number)), "%d: %q", i, w.b.log[:i+1])
			}
		}
	}
	if w.refusals {
		return
	}
	named := 0
	for _, key := range []string{"a", "b", "c"} {
		named += len(w.rows[key])
		if v, ok := have[key]; ok {
			require.Equal(t, string(rowOf(w.rows[key])), v)
			named++
		}
	}
	require.Len(t, have, named, "nothing is left over: %q", w.b.log)
	for i := range w.offsets {
		require.EqualValues(t, i, w.offsets[i])
	}
}
