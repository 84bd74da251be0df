package gatehttp

import (
	"context"
	"iter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/processors/internal/seen"
)

// watcher receives the changes of the gates of one session. changed is called under the lock of the index.
type watcher struct {
	changed func(change)
}

// Watch returns the open gates of a session and calls show for each later change, in order, until stop is called: with
// opened true for a new gate, and with false for one that has ended. gate is its gate.View as JSON, or an object with its
// IDs only if the row no longer has the gate. A gate that ends at once is shown as ended only. show must not block, and may
// be called until stop returns. open encodes one gate at a time and may be used once or several times, also after stop.
//
// Watch blocks until the index is ready, and while the session's row is read. It fails if ctx ends or the row cannot be
// read; the error wraps ErrNotReady unless it is ctx's. caller identifies who waits, so that callers take turns.
func (x *Index) Watch(
	ctx context.Context, caller, session string, show func(opened bool, gate []byte),
) (open iter.Seq[[]byte], stop func(), err error) {
	r, stop, err := x.watch(ctx, caller, session, func(c change) { show(c.opened, x.changeShownTo(caller, c)) })
	if err != nil {
		return nil, nil, err
	}
	open = func(yield func([]byte) bool) {
		for i := range r.all() {
			if v := &r.views[i]; v.Outcome == nil && !yield(x.shownTo(caller, v)) {
				return
			}
		}
	}
	return open, stop, nil
}

// watch returns the row of a session, nil for none, and passes every later change to changed.
func (x *Index) watch(ctx context.Context, caller, session string, changed func(change)) (*row, func(), error) {
	select {
	case <-x.follows.Ready:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	for {
		r, err := x.row(ctx, caller, session)
		if err != nil {
			return nil, nil, err
		}
		if stop, ok := x.watchFrom(session, r, changed); ok {
			return r, stop, nil
		}
	}
}

// watchFrom begins to watch a session if r is still its newest row.
func (x *Index) watchFrom(session string, r *row, changed func(change)) (stop func(), ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.table.sessions[session]
	if (e == nil) != (r == nil) || e != nil && e.place != r.place {
		return nil, false
	}
	w := &watcher{changed}
	if x.watchers[session] == nil {
		x.watchers[session] = map[*watcher]struct{}{}
	}
	x.watchers[session][w] = struct{}{}
	return func() { x.unwatch(session, w) }, true
}

func (x *Index) unwatch(session string, w *watcher) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.watchers[session], w)
	if len(x.watchers[session]) == 0 {
		delete(x.watchers, session)
	}
}

// over returns a channel that is closed when an open gate has ended; nil if the gate is not open.
func (x *Index) over(id string) <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	k := x.table.byID[id]
	if k == nil || !k.open {
		return nil
	}
	if k.over == nil {
		k.over = make(chan struct{})
	}
	return k.over
}

// all returns the views of a row; none for no row.
func (r *row) all() []gate.View {
	if r == nil {
		return nil
	}
	return r.views
}

// changeShownTo returns a change as JSON for a caller.
func (x *Index) changeShownTo(caller string, c change) []byte {
	if c.view != nil {
		return x.shownTo(caller, c.view)
	}
	return entrance.Object("gate_id", c.id, "session_id", c.session)
}

// shownTo returns a view as JSON for a caller, and notes that the caller was shown the whole request.
func (x *Index) shownTo(caller string, v *gate.View) []byte {
	if v.Outcome == nil && !seen.Whole(v.Args) {
		x.shown.Add(caller, v.GateID)
	}
	return viewJSON(v)
}

// asWritten keeps the values of records as they were written.
var asWritten = json.JoinOptions(
	jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true))

// viewJSON returns a view as JSON. The values of a row were checked when they were decoded, so it does not fail; if it did,
// the gate would be shown without its request.
func viewJSON(v *gate.View) []byte {
	b, err := json.Marshal(v, asWritten)
	if err != nil {
		return entrance.Object("gate_id", v.GateID, "session_id", v.SessionID)
	}
	return b
}
