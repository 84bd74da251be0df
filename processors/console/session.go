package console

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"

	"github.com/lovoo/goka"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/operations"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// errForgotten says that it is not known whether a session has a row.
var errForgotten = errors.New("console: the session is not in the index, which has left some out")

// row reads the newest row of a session from the brokers: nil if it has none. It fails if that is not known. It may be called without
// the lock.
func (c *Console) row(ctx context.Context, caller, id string, kind rowKind) (any, error) {
	codecs := [rowKinds]goka.Codec{turn.TableCodec(), gate.TableCodec(), delivery.TableCodec()}
	table := [rowKinds]goka.Group{c.catalog.Group(), c.catalog.GateGroup(), c.catalog.DeliveryGroup()}[kind]
	for range 5 {
		offset, partition, err := c.place(id, kind)
		if err != nil || offset < 0 {
			return nil, err
		}
		r, ok, err := c.follower.rows.ReadOf(ctx, caller, string(goka.GroupTable(table)), partition, offset)
		if err != nil {
			return nil, err
		}
		if ok {
			return codecs[kind].Decode(r.Value)
		}
		// The broker no longer has the record, so it has a newer one of the session.
		if err := c.follower.rows.CatchUp(ctx); err != nil {
			return nil, err
		}
	}
	return nil, errGone
}

// knows reports whether the index has a session.
func (c *Console) knows(id string) bool {
	c.follower.index.mu.Lock()
	defer c.follower.index.mu.Unlock()
	return c.follower.index.sessions[id] != nil
}

// place returns where a row is, a negative offset for none. It returns errNotReady or errForgotten if that is not known.
func (c *Console) place(id string, kind rowKind) (offset int64, partition int32, err error) {
	x := c.follower.index
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.sessions[id]
	switch {
	case s != nil && (s.rows[kind] >= 0 || c.follower.follows.IsReady()):
		return s.rows[kind], s.partition, nil
	case !c.follower.follows.IsReady():
		return -1, 0, errNotReady
	case x.forgotten:
		return -1, 0, errForgotten
	}
	return -1, 0, nil
}

// turnOf returns the view of a session; ok is false if its turn has no row.
func (r *request) turnOf(id string) (v turn.View, ok bool, err error) {
	row, err := r.console.row(r.Context(), r.Key(), id, turnRow)
	if err != nil || row == nil {
		return v, false, err
	}
	v, err = turn.Inspect(id, row)
	return v, err == nil, err
}

func (r *request) gatesOf(id string) ([]gate.View, error) {
	row, err := r.console.row(r.Context(), r.Key(), id, gateRow)
	if err != nil || row == nil {
		return nil, err
	}
	return gate.Gates(id, row)
}

func (r *request) deliveriesOf(id string) ([]delivery.View, error) {
	row, err := r.console.row(r.Context(), r.Key(), id, deliveryRow)
	if err != nil || row == nil {
		return nil, err
	}
	return delivery.Deliveries(id, row)
}

// sessionPage is everything about a session.
type sessionPage struct {
	ID           string
	View         turn.View
	Known        bool
	Unread       bool // it is not known whether the turn has a row
	Waits        []wait
	Gates        []gate.View
	Deliveries   []delivery.View
	Letters      []operations.Letter // the newest
	NoLetters    int                 // that are not shown
	Axis         axis
	Conversation []message
	Shown        bool // the conversation was asked for
	Earlier      int  // messages that are not shown
	Nonce        string
}

// wait is one thing that a session waits for.
type wait struct {
	What, On     string
	Since, Until int64
	Gate         string
}

func showSession(r *request) {
	id := r.first("id")
	if !r.Caller.Allowed(id) {
		r.fail(http.StatusNotFound, "There is no such session.")
		return
	}
	b := sessionPage{ID: id, Shown: r.first("show") == "conversation"}
	var reads errgroup.Group // of different fields
	var failed [5]error
	if !r.console.knows(id) { // it may be new
		failed[4] = r.console.follower.rows.CatchUp(r.Context())
	}
	reads.Go(func() error { b.View, b.Known, failed[0] = r.turnOf(id); return nil })
	reads.Go(func() error { b.Gates, failed[1] = r.gatesOf(id); return nil })
	reads.Go(func() error { b.Deliveries, failed[2] = r.deliveriesOf(id); return nil })
	if b.Shown {
		reads.Go(func() error { b.Conversation, b.Earlier, failed[3] = r.conversation(id); return nil })
	}
	_ = reads.Wait() // the functions return no errors
	unreadable := errors.Join(failed[:]...)
	c := r.console
	x := c.follower.index
	x.mu.Lock()
	all := x.letters.byKey[id]
	b.NoLetters = max(0, len(all)-shortList)
	for _, l := range all[b.NoLetters:] {
		b.Letters = append(b.Letters, x.letters.judged(operations.LetterTopic(goka.Group(l.Group)), l))
	}
	spans, dropped := c.follower.lines.of(id)
	since := c.follower.lines.since
	x.mu.Unlock()
	b.Axis = axisOf(spans, dropped, since, r.now.UnixMilli())
	b.Waits = waitsOf(b, spans)
	b.Nonce = rand.Text()
	empty := !b.Known && len(b.Gates)+len(b.Deliveries)+len(b.Letters)+len(spans) == 0
	status := http.StatusOK
	p := page{Title: "Session", Section: "/sessions", About: "sessions gates deliveries letters", Body: &b}
	switch {
	case unreadable != nil:
		p.Notices = append(p.Notices, "A row of this session cannot be read now, or is not known: what is shown is incomplete.")
		c.logUnreadable(unreadable)
		if b.Unread = !b.Known && (failed[0] != nil || failed[4] != nil); empty {
			status = http.StatusServiceUnavailable
		}
	case empty:
		status = http.StatusNotFound
	}
	r.show(status, "session", p)
}

// waitsOf returns what a session waits for, and since when as far as it is known.
func waitsOf(b sessionPage, spans []span) (list []wait) {
	begun := func(kind spanKind, match func(span) bool) int64 {
		for _, s := range slices.Backward(spans) {
			if s.kind == kind && s.end == 0 && match(s) {
				return s.begin
			}
		}
		return 0
	}
	if t := b.View.Turn; t != nil {
		waitsForCalls := false
		for _, c := range t.Calls {
			if !c.Open {
				continue
			}
			waitsForCalls = true
			w := wait{What: "call", On: c.Name, Until: millis(c.DeadlineAt), Gate: c.GateID}
			if c.GateID != "" {
				w.What = "call that waits for a person"
				for _, g := range b.Gates {
					if g.GateID == c.GateID {
						w.Since, w.Until = millis(g.RequestedAt), millis(g.ExpiresAt)
					}
				}
			} else {
				w.Since = begun(spanCall, func(s span) bool { return s.turn == t.TurnID && s.name == c.Name })
			}
			list = append(list, w)
		}
		if !waitsForCalls {
			list = append(list, wait{
				What: "turn", On: t.WaitsFor, Until: millis(t.DeadlineAt),
				Since: cmp.Or(begun(spanStep, func(s span) bool { return s.turn == t.TurnID }), millis(b.View.ChangedAt)),
			})
		}
	}
	for _, g := range b.Gates {
		if g.Outcome == nil && !slices.ContainsFunc(list, func(w wait) bool { return w.Gate == g.GateID }) {
			list = append(list, wait{What: "gate", On: g.Tool, Since: millis(g.RequestedAt), Until: millis(g.ExpiresAt), Gate: g.GateID})
		}
	}
	for range b.View.Waiting {
		list = append(list, wait{What: "message in the queue", On: "the open turn"})
	}
	for _, d := range b.Deliveries {
		if d.Status != delivery.StatusDead {
			list = append(list, wait{What: "delivery to " + d.Route.Key(), On: d.Status, Since: millis(d.CreatedAt), Until: millis(d.DueAt)})
		}
	}
	return list
}

// message is a message of the conversation.
type message struct{ Role, Text string }

// shownMessages is how many messages of a conversation are shown: the last ones.
const shownMessages = 200

// conversation returns the end of the conversation of a session, and how many messages come before it.
func (r *request) conversation(id string) (list []message, earlier int, err error) {
	c := r.console
	row, err := c.row(r.Context(), r.Key(), id, turnRow)
	if err != nil || row == nil {
		return nil, 0, err
	}
	x := c.follower.index
	raw, err := turn.History(row, func(n uint32) ([]byte, error) {
		x.mu.Lock()
		offset, ok := int64(-1), false
		var partition int32
		if s := x.sessions[id]; s != nil {
			offset, ok = s.parts[n]
			partition = s.partition
		}
		x.mu.Unlock()
		if !ok {
			return nil, nil
		}
		part, _, err := c.follower.rows.ReadOf(r.Context(), r.Key(), c.catalog.Table(), partition, offset)
		return part.Value, err
	})
	if err != nil {
		return nil, 0, err
	}
	var all []topics.Message
	for m := range topics.Messages(raw) {
		all = append(all, m)
	}
	if n := len(all) - shownMessages; n > 0 {
		earlier, all = n, all[n:]
	}
	for _, m := range all {
		shown := topics.Text(m.Content)
		if shown == "" {
			shown = string(m.Content)
		}
		list = append(list, message{cmp.Or(text(m.Role), "user"), r.masked("conversation", id, []byte(shown))})
	}
	return list, earlier, nil
}
