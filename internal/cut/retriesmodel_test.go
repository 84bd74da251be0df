package cut

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"pgregory.net/rapid"

	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
)

const (
	modelTasks = 3
	modelLimit = 4 // attempts
)

var modelTopics = []string{"a", "b"}

// model is a broker, and the handlers of a group: what a series commits, and how often each record has had effects.
type model struct {
	background bool
	fails      map[Partition][]int // of each record, how many calls fail; that is also the number of records

	mu        sync.Mutex
	committed map[Partition]int64
	metadata  map[Partition]int // attempts
	attempts  *Attempts
	calls     map[Partition][]int
	effects   map[Partition][]int // that are durable
	open      map[Partition][]int // in the open transaction
	wrong     string
}

func newModel(background bool, fails map[Partition][]int) *model {
	m := &model{
		background: background, fails: fails, committed: map[Partition]int64{}, metadata: map[Partition]int{},
		attempts: NewAttempts(), calls: map[Partition][]int{}, effects: map[Partition][]int{},
	}
	for p, records := range fails {
		m.calls[p], m.effects[p] = make([]int, len(records)), make([]int, len(records))
	}
	m.clearOpen()
	return m
}

func (m *model) clearOpen() {
	m.open = map[Partition][]int{}
	for p, records := range m.fails {
		m.open[p] = make([]int, len(records))
	}
}

func (m *model) Background() bool { return m.background }
func (m *model) Begin() error     { return nil }

func (m *model) Abort() error { return nil }

// Close makes the effects durable. Every record before a committed offset must have had its effects.
func (m *model) Close(_ context.Context, offsets map[Partition]int64, _ Member) error {
	time.Sleep(time.Millisecond)
	m.mu.Lock()
	defer m.mu.Unlock()
	for p, records := range m.open {
		for i, n := range records {
			m.effects[p][i] += n
		}
	}
	m.clearOpen()
	for p, offset := range offsets {
		for i := range offset {
			if m.effects[p][i] == 0 {
				m.wrong = fmt.Sprintf("offset %d of %v is committed, record %d is lost", offset, p, i)
			}
		}
		m.committed[p], m.metadata[p] = offset, m.attempts.Of(p, Attempt{Offset: offset})
	}
	return nil
}

func (m *model) committedAttempts(p Partition, offset int64) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, ok := m.committed[p]; !ok || at != offset {
		return 0
	}
	return m.metadata[p]
}

func (m *model) call(p Partition, offset int64) (failed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls[p][offset]++
	return m.calls[p][offset] <= m.fails[p][offset]
}

func (m *model) effect(p Partition, offset int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.background {
		m.effects[p][offset]++
	} else {
		m.open[p][offset]++
	}
}

func (m *model) finished() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for p, records := range m.fails {
		if len(records) > 0 && m.committed[p] < int64(len(records)) {
			return false
		}
	}
	return true
}

// end is how a generation ends.
type end struct {
	after   time.Duration
	crash   bool // without a cut
	restart bool // the next generation is of a new process
}

// generation hands out records from the committed offsets, as claims and Goka do, until it is ended.
func (m *model) generation(e end) {
	s := NewSeries(m, Policy{
		Every: 3 * time.Millisecond, Force: 5 * time.Millisecond, MaxRecords: 5, MaxBytes: 1 << 20,
		Drain: time.Hour,
	}, func() Member { return Member{} }, func() []Layer { return nil }, nil, zap.NewNop())
	revoked, revoke := context.WithCancel(context.Background())
	defer revoke()
	var work sync.WaitGroup
	work.Go(func() { _ = s.Run(revoked) })
	r := &Retries{
		Limit: modelLimit, First: time.Millisecond, Longest: 8 * time.Millisecond, Attempts: m.attempts,
		Committed: m.committedAttempts,
	}
	for id := range int32(modelTasks) {
		input := make(chan record, 2)
		for _, topic := range modelTopics {
			p := Partition{topic, id}
			m.mu.Lock()
			from := m.committed[p]
			m.mu.Unlock()
			work.Go(func() { pumpModel(s, p, from, int64(len(m.fails[p])), input) })
		}
		work.Go(func() {
			for {
				select {
				case next := <-input:
					m.handle(s, r, next, &work)
				case <-s.Context().Done():
					return
				}
			}
		})
	}
	if e.after > 0 {
		time.Sleep(e.after)
	}
	for e.after == 0 && !m.finished() {
		time.Sleep(time.Millisecond)
	}
	if e.crash {
		s.Fail(errors.New("crash"))
	}
	revoke()
	work.Wait()
	_ = s.Abort()
	m.clearOpen() // a producer that is closed aborts its transaction, also that of a cut that was made and not closed
	if e.restart {
		m.attempts = NewAttempts()
	}
}

type record struct {
	p      Partition
	offset int64
}

func pumpModel(s *Series, p Partition, from, to int64, input chan<- record) {
	for offset := from; offset < to; offset++ {
		if !s.Acquire(p, offset+1, 1) {
			return
		}
		select {
		case input <- record{p, offset}:
		case <-s.Context().Done():
			return
		}
	}
}

// handle is a callback. Its outputs are acknowledged later.
func (m *model) handle(s *Series, r *Retries, next record, work *sync.WaitGroup) {
	if !s.Begun(next.p, next.offset) {
		s.Release()
		return
	}
	of := Attempt{Offset: next.offset}
	for failed := 0; m.call(next.p, next.offset); {
		if failed = r.count(retrying{series: s, failed: failed}, next.p, of); r.isOver(failed) {
			break // the effect is a dead letter
		}
		s.Pause(next.p, next.offset)
		select {
		case <-time.After(r.wait(failed)):
		case <-s.Context().Done():
		}
		if !s.Resume(next.p, next.offset) {
			<-s.Context().Done()
			s.Release()
			return
		}
	}
	m.effect(next.p, next.offset)
	work.Go(func() {
		time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
		s.Release()
	})
}

// Whatever handlers fail, and however generations end: no record is lost. Its effects are durable once under exactly once,
// and once under at least once if nothing crashed. Without crashes, handlers are called as often as configured.
func TestFailingHandlersLoseAndRepeatNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		fails := map[Partition][]int{}
		for id := range int32(modelTasks) {
			for _, topic := range modelTopics {
				fails[Partition{topic, id}] = rapid.SliceOfN(rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3, 100}), 0, 5).Draw(rt, topic)
			}
		}
		background := rapid.Bool().Draw(rt, "background")
		ends := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) end {
			return end{
				after: time.Duration(rapid.IntRange(1, 30).Draw(rt, "after")) * time.Millisecond,
				crash: rapid.IntRange(0, 3).Draw(rt, "crash") == 0, restart: rapid.Bool().Draw(rt, "restart"),
			}
		}), 0, 4).Draw(rt, "ends")
		m, crashed := newModel(background, fails), false
		synctest.Test(t, func(*testing.T) {
			for _, e := range ends {
				m.generation(e)
				crashed = crashed || e.crash
			}
			m.generation(end{})
		})
		require.Empty(rt, m.wrong)
		for p, records := range fails {
			for i, n := range records {
				if background && crashed {
					require.Positive(rt, m.effects[p][i], "%v %d", p, i)
				} else {
					require.Equal(rt, 1, m.effects[p][i], "%v %d", p, i)
				}
				if !crashed {
					require.Equal(rt, min(n+1, modelLimit), m.calls[p][i], "%v %d", p, i)
				}
			}
		}
	})
}
