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
		ordered, refusals := c.ordered, c.refusals
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				b := &broker{line: &line{
					in:   make(chan *sarama.ProducerMessage, 100),
					done: make(chan *sarama.ProducerMessage), errs: make(chan *sarama.ProducerError),
				}}
				if refusals {
					b.refuse = rapid.IntRange(1, 20).Draw(t, "refuse")
				}
				go b.run()
				var offsets []int64
				p := NewProducer(b.line, ProducerOptions{
					Table: "table", Ordered: ordered,
					Linger: rapid.SampledFrom([]time.Duration{0, 50 * time.Microsecond}).Draw(t, "linger"),
					Failed: func(error) {}, Broken: func(error) {},
					Stored: func(_ int32, o int64, _ bool) error { offsets = append(offsets, o); return nil },
				})
				defer func() { require.NoError(t, p.Close()); close(b.in) }()
				rows := map[string][]int{}
				next := map[string]int{}
				var settling []Settling
				finish := func() {
					deadline := time.Now().Add(testTimeout)
					for _, s := range settling {
						for {
							select {
							case <-s.Done():
								require.True(t, refusals || s.Err() == nil)
							default:
								if !b.ackOne(true, 0) && !b.ackOne(false, 0) {
									runtime.Gosched()
								}
								require.True(t, time.Now().Before(deadline), "stuck")
								continue
							}
							break
						}
					}
					settling = nil
				}
				for range rapid.IntRange(1, 40).Draw(t, "moves") {
					switch rapid.IntRange(0, 6).Draw(t, "move") {
					case 0:
						settling = append(settling, p.Seal())
						if !ordered {
							finish()
						}
					case 1:
						b.ackOne(true, 0)
					case 2:
						b.ackOne(false, rapid.IntRange(0, 5).Draw(t, "which"))
					case 3:
						runtime.Gosched() // let the sender and the linger run
					default:
						key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")
						p.Begin(0)
						adds, outs := rapid.IntRange(0, 2).Draw(t, "adds"), rapid.IntRange(0, 1).Draw(t, "outs")
						leaves := rapid.IntRange(0, 5).Draw(t, "leaves") == 0
						drops := rapid.IntRange(0, 2).Draw(t, "drops")
						ended := make(chan error, 1)
						go func() {
							if leaves {
								adds, drops = 0, len(rows[key])
							}
							var gone []int
							for range min(drops, len(rows[key])) {
								gone, rows[key] = append(gone, rows[key][0]), rows[key][1:]
							}
							for range adds {
								n := next[key]
								next[key]++
								if err := p.EmitPart(0, runtimeapi.PartKey(key, uint32(n)), []byte("p")); err != nil {
									ended <- err
									return
								}
								rows[key] = append(rows[key], n)
							}
							for range outs {
								e := newEmitted("out", key, []byte("o"))
								e.waiter = promised(func(error) {})
								p.emitOutput(0, e)
							}
							var raw []byte
							if leaves {
								rows[key], next[key] = nil, 0 // numbers come again
							} else {
								raw = []byte("r" + strings.Trim(fmt.Sprint(rows[key]), "[]"))
							}
							err := p.EmitRow(0, key, raw, nil)
							for _, n := range gone {
								if err == nil {
									err = p.EmitPart(0, runtimeapi.PartKey(key, uint32(n)), nil)
								}
							}
							ended <- err
						}()
						deadline := time.Now().Add(testTimeout)
						for waits := true; waits; {
							select {
							case err := <-ended:
								require.True(t, refusals || err == nil)
								waits = false
							case <-time.After(2 * time.Millisecond):
								if !b.ackOne(true, 0) {
									b.ackOne(false, 0)
								}
								require.True(t, time.Now().Before(deadline), "a callback hangs")
							}
						}
					}
				}
				settling = append(settling, p.Seal())
				finish()
				b.mu.Lock()
				defer b.mu.Unlock()
				have := map[string]string{}
				for i, l := range b.log {
					key, value, _ := strings.Cut(l, "=")
					have[key] = value
					if value == "" {
						delete(have, key)
					}
					if i > 0 {
						require.GreaterOrEqual(t, b.cuts[i], b.cuts[i-1], "cuts follow one another: %q", b.log)
					}
					for k, v := range have {
						if runtimeapi.IsPart(k) {
							continue
						}
						for _, n := range strings.Fields(v[1:]) {
							number, _ := strconv.Atoi(n)
							require.Contains(t, have, runtimeapi.PartKey(k, uint32(number)), "%d: %q", i, b.log[:i+1])
						}
					}
				}
				if refusals {
					return
				}
				named := 0
				for _, key := range []string{"a", "b", "c"} {
					parts := rows[key]
					named += len(parts)
					if v, ok := have[key]; ok {
						require.Equal(t, "r"+strings.Trim(fmt.Sprint(parts), "[]"), v)
						named++
					}
				}
				require.Len(t, have, named, "nothing is left over: %q", b.log)
				for i := range offsets {
					require.EqualValues(t, i, offsets[i])
				}
			})
		})
	}
}
