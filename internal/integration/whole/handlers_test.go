package whole

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
)

var errBoom = errors.New("boom")

const (
	soon = time.Millisecond
	// never is a wait that no test lives to see the end of.
	never = time.Hour
)

// handler answers each text with itself, and counts the answers in the row. What a text begins with decides otherwise.
type handler struct {
	r  *rig
	mu sync.Mutex
	// calls counts the calls for each text; "fails N" fails the first N calls, "fails" all.
	calls map[string]int
}

func newHandler(r *rig) *handler { return &handler{r: r, calls: map[string]int{}} }

func (h *handler) called(text string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[text]
}

func (h *handler) handle(c *processors.Context, in codec.Decoded[string]) error {
	h.mu.Lock()
	h.calls[in.Value]++
	calls := h.calls[in.Value]
	h.mu.Unlock()
	row, _ := c.Value().([]byte)
	var err error
	if !strings.HasPrefix(in.Value, "at") {
		err = c.SetValue(append(append([]byte(nil), row...), '+'))
	}
	if err == nil {
		err = processors.Emit(c, h.r.out, c.Key(), in.Value, nil)
	}
	if err != nil {
		return err
	}
	first, rest, _ := strings.Cut(in.Value, " ")
	switch first {
	case "letter":
		return c.DeadLetter("no such floor")
	case "panics":
		panic("secret")
	case "keep":
		return fmt.Errorf("row of a newer version: %w", processors.ErrKeepRecord)
	case "at": // a deadline in that many milliseconds
		var ms int64
		if _, err := fmt.Sscan(rest, &ms); err != nil {
			return err
		}
		return c.SetValue(binary.BigEndian.AppendUint64(nil, uint64(ms)))
	case "fails":
		n := 1 << 30
		_, _ = fmt.Sscan(rest, &n)
		if calls <= n {
			return errBoom
		}
	}
	return nil
}

// A record whose handler always fails, or panics, is dead-lettered once, and everything else is handled once.
func TestRecordWhoseHandlerFailsIsDeadLetteredAndTheRestContinues(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		r := newRig(t, guarantee, 2)
		h := newHandler(r)
		m := r.run("a", h.handle, processors.WithRestartBackoff(soon, soon), processors.WithHandlerAttempts(3))
		r.put(0, "letter", "fails", "next", "panics", "fails 2", "last")
		r.put(1, "other")
		require.Equal(t, []string{"fails 2", "last", "letter", "next", "other"}, r.outputs(5))
		letters := r.letters(3)
		require.Equal(t, "fails: 3 attempts failed: boom", letters[0])
		require.Equal(t, "letter: no such floor", letters[1])
		require.Contains(t, letters[2], "panics: panic: string in")
		require.Equal(t, []int{3, 1, 3}, []int{h.called("fails"), h.called("panics"), h.called("fails 2")})

		r.put(0, "letter again", "after")
		require.Len(t, r.outputs(7), 7)
		require.Len(t, r.letters(4), 4, "none is written again before a later one")
		row, err := m.Get(r.key(0))
		require.NoError(t, err)
		require.Equal(t, "++++++", string(row.([]byte)), "a failed attempt has no effects")
		require.Empty(t, m.restarts())
		require.Zero(t, m.Health().Restarts)
		require.ErrorIs(t, m.Health().Err, errBoom)
		require.NoError(t, m.stop())
	})
}

// A record that is retried delays its partition only: the others are handled and committed.
func TestOtherPartitionsContinueWhileARecordIsRetried(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		r := newRig(t, guarantee, 4)
		h := newHandler(r)
		m := r.run("a", h.handle, processors.WithRestartBackoff(never, never))
		failing := r.put(0, "before", "fails", "behind") + 1
		r.put(1, "fails too")
		require.Equal(t, []int{1, 1}, []int{<-m.retries, <-m.retries})
		r.put(2, "a", "b")
		r.put(3, "c")
		require.Equal(t, []string{"a", "b", "before", "c"}, r.outputs(4))
		r.eventuallyCommitted(2, 2)
		r.eventuallyCommitted(3, 1)
		r.eventuallyCommitted(0, failing)
		for _, p := range []int32{0, 1} {
			require.Eventually(t, func() bool {
				_, metadata := r.committed(p)
				return strings.HasSuffix(metadata, " attempts=1")
			}, waitLimit, 10*time.Millisecond)
		}
		require.Equal(t, processors.Running, m.Health().State)
		began := time.Now()
		require.NoError(t, m.stop())
		require.Less(t, time.Since(began), never)
		at, _ := r.committed(0)
		require.Equal(t, failing, at)
	})
}

// Attempts are counted across processes that stop while the record is retried. What is behind the record is handled once.
func TestAttemptsAreCountedAcrossProcesses(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		r := newRig(t, guarantee, 1)
		h := newHandler(r)
		texts := []string{"before", "fails"}
		for n := range 30 {
			texts = append(texts, fmt.Sprint("behind ", n))
		}
		r.put(0, texts...)
		wait := processors.WithRestartBackoff(never, never)
		for attempt := range 3 {
			m := r.run("a", h.handle, wait, processors.WithHandlerAttempts(4))
			require.Equal(t, attempt+1, <-m.retries)
			require.NoError(t, m.stop())
			at, metadata := r.committed(0)
			require.EqualValues(t, 1, at)
			require.True(t, strings.HasSuffix(metadata, fmt.Sprint(" attempts=", attempt+1)), metadata)
		}
		m := r.run("a", h.handle, wait, processors.WithHandlerAttempts(4))
		require.Len(t, r.outputs(31), 31)
		require.Equal(t, []string{"fails: 4 attempts failed: boom"}, r.letters(1))
		require.Equal(t, 4, h.called("fails"))
		require.NoError(t, m.stop())
		at, metadata := r.committed(0)
		require.EqualValues(t, 32, at)
		require.NotContains(t, metadata, "attempts")
	})
}

// Attempts are counted across rebalances, and a record that waits for its next attempt does not delay one.
func TestAttemptsAreCountedAcrossRebalances(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		r := newRig(t, guarantee, 2)
		h := newHandler(r)
		wait := processors.WithRestartBackoff(never, never)
		a := r.run("a", h.handle, wait)
		r.put(0, "x", "fails")
		r.put(1, "fails")
		require.Equal(t, []int{1, 1}, []int{<-a.retries, <-a.retries})
		b := r.run("b", h.handle, wait)
		require.Equal(t, []int{2, 2}, []int{<-a.retries, <-b.retries}, "one partition each")
		require.NoError(t, a.stop())
		require.Equal(t, []int{3, 3}, []int{<-b.retries, <-b.retries})
		require.NoError(t, b.stop())
		require.Equal(t, []string{"x"}, r.outputs(1))
	})
}

// A record that this build cannot handle is never dead-lettered. The restarts begin at it: nothing before it is repeated.
func TestRecordThatMustBeKeptIsNeverDeadLettered(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		r := newRig(t, guarantee, 2)
		h := newHandler(r)
		r.put(1, "letter other", "other")
		r.put(0, "letter")
		m := r.start("a", h.handle, processors.WithRestartBackoff(soon, soon), processors.WithRestartLimit(3),
			processors.WithHandlerAttempts(1))
		require.Eventually(t, func() bool { return m.Health().State == processors.Running }, waitLimit, 5*time.Millisecond)
		r.eventuallyCommitted(0, 1)
		r.eventuallyCommitted(1, 2) // progress of a later run would start the count of restarts again
		r.put(0, "keep", "behind")
		var err error
		select {
		case err = <-m.result:
		case <-time.After(waitLimit):
			t.Fatal("Run does not end")
		}
		require.ErrorIs(t, err, processors.ErrGaveUp)
		require.ErrorIs(t, err, processors.ErrKeepRecord)
		var failed *processors.RecordError
		require.ErrorAs(t, err, &failed)
		require.EqualValues(t, 1, failed.Offset)
		at, metadata := r.committed(0)
		require.EqualValues(t, 1, at)
		require.NotContains(t, metadata, "attempts")
		require.Equal(t, 4, h.called("keep"))
		require.Equal(t, 1, h.called("letter"))

		newer := r.run("a", func(c *processors.Context, in codec.Decoded[string]) error {
			return processors.Emit(c, r.out, c.Key(), in.Value, nil)
		})
		require.Equal(t, []string{"behind", "keep", "letter", "letter other", "other"}, r.outputs(5))
		require.Len(t, r.letters(2), 2)
		require.NoError(t, newer.stop())
	})
}

// A deadline whose handler always fails is dead-lettered; the deadlines behind it fire, and so does the next one of its row.
func TestDeadlineWhoseHandlerFailsIsDeadLettered(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		r := newRig(t, guarantee, 1)
		var failing atomic.Bool
		failing.Store(true)
		r.deadline = func(c *processors.Context) error {
			if err := processors.Emit(c, r.out, c.Key(), "fired "+fmt.Sprint(c.Offset()), nil); err != nil {
				return err
			}
			if failing.Load() {
				return errBoom
			}
			return c.Delete()
		}
		h := newHandler(r)
		m := r.run("a", h.handle, processors.WithRestartBackoff(soon, soon), processors.WithHandlerAttempts(3))
		r.put(0, "at 1000")
		require.Equal(t, []string{": 3 attempts failed: boom"}, r.letters(1))
		require.Equal(t, []int{1, 2}, []int{<-m.retries, <-m.retries})
		failing.Store(false)
		r.put(0, "at 2000")
		require.Equal(t, []string{"at 1000", "at 2000", "fired 2000"}, r.outputs(3))
		require.NoError(t, m.stop())
		require.Empty(t, m.retries)
		require.Empty(t, m.restarts())
	})
}
