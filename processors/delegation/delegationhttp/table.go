package delegationhttp

import (
	"container/list"
	"slices"
	"time"

	"github.com/turntable-streams/turntable/topics"
)

// table has an entry for each delegation that had a record lately. It is bounded, does no I/O and is not safe for concurrent use.
type table struct {
	limit    int
	lookback time.Duration
	byID     map[string][]*entry // by callback ID; usually of one session
	sessions map[string][]*entry // oldest first
	recent   *list.List          // of *entry; the one without a record for the longest time first
}

// entry is what is known of a delegation without its result, and where the result is.
type entry struct {
	topics.Delegation // without Result and Error
	partition         int32
	offset            int64
	written           time.Time // of the last record
	element           *list.Element
}

func (e *entry) ended() bool { return e.Status != topics.DelegationOpen }

func newTable(limit int, lookback time.Duration) *table {
	return &table{limit: limit, lookback: lookback, byID: map[string][]*entry{}, sessions: map[string][]*entry{}, recent: list.New()}
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
	e := t.find(d.SessionID, d.CallbackID)
	switch {
	case e == nil:
	case d.StartedMS < e.StartedMS:
		return
	case d.StartedMS == e.StartedMS && (e.ended() || d.Status == topics.DelegationOpen):
		return
	default:
		t.remove(e)
	}
	e = &entry{Delegation: d, partition: partition, offset: offset, written: written}
	e.element = t.recent.PushBack(e)
	t.byID[d.CallbackID] = append(t.byID[d.CallbackID], e)
	of := t.sessions[d.SessionID]
	at, _ := slices.BinarySearchFunc(of, d.StartedMS+1, func(o *entry, started int64) int { return int(o.StartedMS - started) })
	t.sessions[d.SessionID] = slices.Insert(of, at, e)
	if t.recent.Len() > t.limit {
		t.remove(t.recent.Front().Value.(*entry))
	}
}

// find returns the delegation of a session with an ID, nil if there is none.
func (t *table) find(session, callbackID string) *entry {
	for _, e := range t.byID[callbackID] {
		if e.SessionID == session {
			return e
		}
	}
	return nil
}

// expire removes the delegations without a record within the look-back.
func (t *table) expire(now time.Time) {
	for front := t.recent.Front(); front != nil; front = t.recent.Front() {
		e := front.Value.(*entry)
		if e.written.After(now.Add(-t.lookback)) {
			return
		}
		t.remove(e)
	}
}

func (t *table) remove(e *entry) {
	t.recent.Remove(e.element)
	drop(t.byID, e.CallbackID, e)
	drop(t.sessions, e.SessionID, e)
}

func drop(from map[string][]*entry, key string, e *entry) {
	rest := slices.DeleteFunc(from[key], func(o *entry) bool { return o == e })
	if from[key] = rest; len(rest) == 0 {
		delete(from, key)
	}
}
