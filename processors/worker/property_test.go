package worker

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
)

// modelRecord is a record as the broker of the model sees it.
type modelRecord struct {
	deliveries int
	holder     int // process that holds it, or -1
	attempts   int // calls of the present holder's handler, earlier deliveries included
	settled    bool
	archived   bool // the broker delivers it no more
	outcomes   int  // results and dead letters
	calls      int
	callsAfter int // calls that began after the record was settled
}

// model is a broker that delivers each record limit times, and processes that follow the worker's rules.
type model struct {
	t       *rapid.T
	policy  RetryPolicy
	limit   int
	records []*modelRecord
}

func (m *model) attempt(r *modelRecord) attempt { return attempt{r.attempts, m.limit - r.deliveries} }

// deliver gives an available record to a process, which follows RetryPolicy.first.
func (m *model) deliver(r *modelRecord, process int) {
	r.deliveries++
	r.holder, r.attempts = process, r.deliveries-1
	if m.policy.first(m.attempt(r)) == bury {
		m.end(r)
		return
	}
	m.call(r)
}

func (m *model) call(r *modelRecord) {
	r.calls++
	if r.settled {
		r.callsAfter++
	}
}

// end is a result or a dead letter, whose record is acknowledged.
func (m *model) end(r *modelRecord) {
	r.outcomes++
	r.settled, r.holder = true, -1
}

// free makes a record available again, or archives it after its last delivery.
func (m *model) free(r *modelRecord) {
	r.holder = -1
	r.archived = r.deliveries >= m.limit
}

// finish ends a call of the handler and follows RetryPolicy.after.
func (m *model) finish(r *modelRecord, err error, interrupted bool) {
	r.attempts++
	switch next, _ := m.policy.after(m.attempt(r), err, interrupted, 0); next {
	case call:
		m.call(r)
	case release:
		m.free(r)
	case settle, bury:
		m.end(r)
	}
}

func (m *model) step() {
	r := m.records[rapid.IntRange(0, len(m.records)-1).Draw(m.t, "record")]
	if r.settled || r.archived {
		return
	}
	if r.holder < 0 {
		m.deliver(r, rapid.IntRange(0, 2).Draw(m.t, "process"))
		return
	}
	switch rapid.SampledFrom([]string{"success", "failure", "crash", "expiry", "stop"}).Draw(m.t, "event") {
	case "success":
		m.finish(r, nil, false)
	case "failure":
		m.finish(r, errBroken, false)
	case "stop":
		m.finish(r, errBroken, true)
	case "expiry": // of the lock; the verdict of the call has no effect then
		m.free(r)
	case "crash": // of the process, with all that it holds
		process := r.holder
		for _, other := range m.records {
			if other.holder == process {
				m.free(other)
			}
		}
	}
}

// Crashes, lock expiries, stops and failures in any order lose no record: each ends in exactly one acknowledged outcome, and no
// handler is called for a record that is settled.
func TestNoRecordIsLostOrRepeatedAfterItIsSettled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{
			t: t, limit: rapid.IntRange(1, 10).Draw(t, "limit"),
			policy: RetryPolicy{Limit: rapid.IntRange(1, 10).Draw(t, "attempts")}.withDefaults(),
		}
		for range rapid.IntRange(1, 4).Draw(t, "records") {
			m.records = append(m.records, &modelRecord{holder: -1})
		}
		for range rapid.IntRange(0, 80).Draw(t, "steps") {
			m.step()
		}
		for i, r := range m.records { // what is still open ends without further interruptions
			for !r.settled && !r.archived {
				if r.holder < 0 {
					m.deliver(r, 0)
				} else {
					m.finish(r, nil, false)
				}
			}
			what := fmt.Sprintf("record %d: %+v", i, *r)
			require.True(t, r.settled, what)
			require.False(t, r.archived, what)
			require.Equal(t, 1, r.outcomes, what)
			require.Zero(t, r.callsAfter, what)
			// Failures before an interruption are not known to the next process; deliveries are.
			require.LessOrEqual(t, r.calls, m.policy.Limit*min(m.policy.Limit, m.limit-1), what)
		}
	})
}
