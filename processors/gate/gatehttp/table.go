package gatehttp

import (
	"cmp"
	"math"
	"slices"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors/gate"
)

// table is what the index knows of the gates of all sessions: small entries for all of them, and the newest rows as long as
// they fit into the memory for rows. It is bounded. It does no I/O and is not safe for concurrent use.
type table struct {
	gates int // maximum number of gates and sessions
	bytes int // maximum size of the rows

	sessions map[string]*entry
	byID     map[string]*known
	pending  []*known                       // the open gates, in the order of their requests
	ended    *simplelru.LRU[string, *known] // the others, in the order in which the index saw their outcomes, by ID
	cached   *simplelru.LRU[string, *row]   // the newest rows that are in memory, by session
	size     int                            // of the cached rows
	next     map[int32]int64
	// left is the offset of the first row of which something was left out because there was too much, by partition.
	left map[int32]int64
	// broken is the number of sessions with a row that cannot be decoded.
	broken    int
	rereading *rereading // nil for none
}

func newTable(gates, bytes int) *table {
	t := &table{
		gates: gates, bytes: bytes, sessions: map[string]*entry{}, byID: map[string]*known{}, next: map[int32]int64{},
		left: map[int32]int64{},
	}
	t.ended, _ = simplelru.NewLRU[string, *known](math.MaxInt, nil) // its only error is a size of 0
	t.cached, _ = simplelru.NewLRU(math.MaxInt, func(_ string, r *row) { t.size -= r.size })
	return t
}

// place is where a record is in the table's topic.
type place struct {
	partition int32
	offset    int64
}

// entry is a session with gates or grants.
type entry struct {
	session string
	place   place // of the row's newest record
	gates   []*known
	grants  bool
	broken  bool // the row cannot be decoded
	partial bool // gates of the row were left out
}

// row is what the door shows of a row. It is constant.
type row struct {
	place  place
	views  []gate.View
	grants []*gaterow.Grant
	size   int
}

// known is a gate. All but open is constant.
type known struct {
	id, session string
	opened      int64
	open        bool
	over        chan struct{} // closed when the gate is no longer open; nil if no request waits
}

// before orders gates by their requests.
func (k *known) before(opened int64, id string) int {
	return cmp.Or(cmp.Compare(k.opened, opened), cmp.Compare(k.id, id))
}

// update is a record of the table's topic.
type update struct {
	session string
	place   place
	state   *gaterow.State // nil for a row that was deleted
	broken  bool           // the row cannot be decoded
	err     error          // why it cannot be
	size    int
}

// change is a gate that was opened, or that has ended.
type change struct {
	session, id string
	opened      bool
	view        *gate.View // nil if the row no longer has the gate
}

// apply applies a record and returns the gates that changed, the ended ones first.
func (t *table) apply(u update) (changes []change) {
	if u.place.offset < t.next[u.place.partition] { // the topic was deleted and created again
		changes = t.drop(u.place.partition)
	}
	t.next[u.place.partition] = u.place.offset + 1
	t.touch(u.session)
	return append(changes, t.put(u)...)
}

// incomplete reports whether gates may be missing: there were too many, or a row cannot be decoded.
func (t *table) incomplete() bool { return len(t.left) > 0 || t.broken > 0 }

// full reports whether there is no room for another open gate.
func (t *table) full() bool { return len(t.pending)+len(t.sessions) > t.gates }

// leave notes that something of a row is left out.
func (t *table) leave(at place) {
	if r := t.rereading; r != nil && r.partition == at.partition {
		r.leave(at.offset)
	}
	if first, ok := t.left[at.partition]; !ok || at.offset < first {
		t.left[at.partition] = at.offset
	}
}

// remove removes a session without gates.
func (t *table) remove(e *entry) {
	t.cached.Remove(e.session)
	t.setBroken(e, false)
	delete(t.sessions, e.session)
}

func (t *table) setBroken(e *entry, broken bool) {
	if e.broken {
		t.broken--
	}
	if e.broken = broken; broken {
		t.broken++
	}
}

// put puts the newest row of a session into the table and returns the gates that changed, the ended ones first.
func (t *table) put(u update) (changes []change) {
	e := t.sessions[u.session]
	if e == nil {
		e = &entry{session: u.session}
		t.sessions[u.session] = e
	}
	t.cached.Remove(e.session)
	e.place, e.partial = u.place, false
	t.setBroken(e, u.broken)
	if u.broken {
		if len(e.gates) == 0 && t.full() {
			t.leave(u.place)
			t.remove(e)
		}
		return nil
	}
	r := rowOf(u)
	e.grants = len(r.grants) > 0
	changes = t.replace(e, u.state, r)
	switch full := len(t.byID)+len(t.sessions) > t.gates; {
	case len(e.gates) == 0 && e.grants && full:
		t.leave(u.place)
		t.remove(e)
	case len(e.gates) == 0 && !e.grants:
		t.remove(e)
	default:
		t.cache(e.session, r)
	}
	return changes
}

func rowOf(u update) *row {
	views, _ := gate.Gates(u.session, u.state) // a decoded row has no error
	return &row{place: u.place, views: views, grants: u.state.GetGrants(), size: u.size + 512*len(views)}
}

// view returns the view of a gate; nil if the row does not have it.
func (r *row) view(id string) *gate.View {
	if r == nil {
		return nil
	}
	for i := range r.views {
		if r.views[i].GateID == id {
			return &r.views[i]
		}
	}
	return nil
}

// replace replaces the gates of a session by those of its row.
func (t *table) replace(e *entry, s *gaterow.State, r *row) (ended []change) {
	before := e.gates
	e.gates = nil
	kept := map[string]bool{}
	for _, g := range s.GetClosed() {
		k := t.byID[g.Id]
		switch {
		case k == nil:
			k = &known{id: g.Id, session: e.session, opened: g.OpenedMs}
			t.byID[g.Id] = k
			t.ended.Add(k.id, k)
			ended = append(ended, change{e.session, g.Id, false, r.view(g.Id)})
		case k.session != e.session:
			continue
		case k.open:
			t.end(k)
			t.ended.Add(k.id, k)
			ended = append(ended, change{e.session, g.Id, false, r.view(g.Id)})
		}
		kept[g.Id] = true
		e.gates = append(e.gates, k)
	}
	opened := t.add(e, s, r, kept)
	for _, k := range before {
		if kept[k.id] {
			continue
		}
		if k.open {
			ended = append(ended, change{session: e.session, id: k.id})
		}
		t.forget(k)
	}
	t.makeRoom()
	return append(ended, opened...)
}

// add adds the open gates of a row.
func (t *table) add(e *entry, s *gaterow.State, r *row, kept map[string]bool) (opened []change) {
	for _, g := range s.GetOpen() {
		k := t.byID[g.Id]
		if k == nil {
			if t.full() {
				e.partial = true
				t.leave(e.place)
				continue
			}
			k = &known{id: g.Id, session: e.session, opened: g.OpenedMs, open: true}
			t.byID[g.Id] = k
			i, _ := t.position(k.opened, k.id)
			t.pending = slices.Insert(t.pending, i, k)
			opened = append(opened, change{e.session, g.Id, true, r.view(g.Id)})
		}
		if k.session == e.session {
			kept[g.Id] = true
			e.gates = append(e.gates, k)
		}
	}
	return opened
}

// end makes an open gate one that is not open.
func (t *table) end(k *known) {
	k.open = false
	if i, ok := t.position(k.opened, k.id); ok {
		t.pending = slices.Delete(t.pending, i, i+1)
	}
	if k.over != nil {
		close(k.over)
		k.over = nil
	}
}

// position returns where an open gate is in pending, or would be.
func (t *table) position(opened int64, id string) (int, bool) {
	return slices.BinarySearchFunc(t.pending, struct{}{}, func(k *known, _ struct{}) int { return k.before(opened, id) })
}

// forget removes a gate. The caller removes it from its session.
func (t *table) forget(k *known) {
	if k.open {
		t.end(k)
	}
	t.ended.Remove(k.id)
	delete(t.byID, k.id)
}

// makeRoom forgets the oldest gates that have ended, until there are not too many.
func (t *table) makeRoom() {
	for len(t.byID)+len(t.sessions) > t.gates && t.ended.Len() > 0 {
		_, k, _ := t.ended.GetOldest()
		t.forget(k)
		e := t.sessions[k.session]
		e.gates = slices.DeleteFunc(e.gates, func(o *known) bool { return o == k })
		if len(e.gates) == 0 && !e.grants && !e.broken {
			t.remove(e)
		}
	}
}

// drop removes all sessions of a partition.
func (t *table) drop(partition int32) (ended []change) {
	delete(t.left, partition)
	if t.rereading != nil && t.rereading.partition == partition {
		t.rereading = nil
	}
	for _, e := range t.sessions {
		if e.place.partition != partition {
			continue
		}
		for _, k := range e.gates {
			if k.open {
				ended = append(ended, change{session: e.session, id: k.id})
			}
			t.forget(k)
		}
		t.remove(e)
	}
	return ended
}

// cache keeps the row of a session, and drops the rows that were not used for the longest time.
func (t *table) cache(session string, r *row) {
	t.cached.Remove(session)
	t.cached.Add(session, r)
	for t.size += r.size; t.size > t.bytes && t.cached.Len() > 1; {
		t.cached.RemoveOldest()
	}
}
