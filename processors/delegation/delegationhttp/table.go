package delegationhttp

import (
	"slices"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/turntable-streams/turntable/topics"
)

// table has an entry for each delegation that had a record lately. It is bounded, does no I/O and is not safe for concurrent use.
type table struct {
	lookback time.Duration
	byID     map[string][]*entry // by callback ID; usually of one session
	sessions map[string][]*entry // oldest first
	recent   *simplelru.LRU[key, *entry]
}

// key identifies a delegation.
type key struct{ session, callbackID string }

// entry is what is known of a delegation without its result, and where the result is.
type entry struct {
	topics.Delegation // without Result and Error
	partition         int32
	offset            int64
	written           time.Time // of the last record
}

func (e *entry) ended() bool { return e.Status != topics.DelegationOpen }

func newTable(limit int, lookback time.Duration) *table {
	t := &table{lookback: lookback, byID: map[string][]*entry{}, sessions: map[string][]*entry{}}
	t.recent, _ = simplelru.NewLRU(limit, func(k key, e *entry) { // its only error is a limit of 0
		drop(t.byID, k.callbackID, e)
		drop(t.sessions, k.session, e)
	})
	return t
}

// add adds a record. After a crash, the group may write records again: the first end of a delegation counts, and it is not open
// again. A delegation that began later replaces one with the same ID.
func (t *table) add(d topics.Delegation, partition int32, offset int64, written, now time.Time) {
	if written.After(now) {
		written = now // a producer's clock that is ahead must not keep the entry
	}
	t.expire(now)
	if !written.After(now.Add(-t.lookback)) {
		return
	}
	d.Result, d.Error = "", ""
	k := key{d.SessionID, d.CallbackID}
	e, _ := t.recent.Peek(k)
	switch {
	case e == nil:
	case d.StartedMS < e.StartedMS:
		return
	case d.StartedMS == e.StartedMS && (e.ended() || d.Status == topics.DelegationOpen):
		return
	default:
		t.recent.Remove(k)
	}
	e = &entry{Delegation: d, partition: partition, offset: offset, written: written}
	t.byID[d.CallbackID] = append(t.byID[d.CallbackID], e)
	of := t.sessions[d.SessionID]
	at, _ := slices.BinarySearchFunc(of, d.StartedMS+1, func(o *entry, started int64) int { return int(o.StartedMS - started) })
	t.sessions[d.SessionID] = slices.Insert(of, at, e)
	t.recent.Add(k, e)
}

// expire removes the delegations without a record within the look-back.
func (t *table) expire(now time.Time) {
	for {
		_, e, ok := t.recent.GetOldest()
		if !ok || e.written.After(now.Add(-t.lookback)) {
			return
		}
		t.recent.RemoveOldest()
	}
}

func drop(from map[string][]*entry, key string, e *entry) {
	rest := slices.DeleteFunc(from[key], func(o *entry) bool { return o == e })
	if from[key] = rest; len(rest) == 0 {
		delete(from, key)
	}
}
