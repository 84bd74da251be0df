package console

import (
	"net/http"
	"strings"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/operations"
)

// shortList is how many entries the parts of the attention page have.
const shortList = 10

// attentionPage is what needs a person.
type attentionPage struct {
	Gates     listing[openGate]
	Overdue   listing[sessionLine]
	Waiting   listing[sessionLine]
	Dead      listing[deliveryLine]
	Letters   int
	Partial   bool // not all sessions of the caller are counted
	Down      []groupLine
	Behind    []operations.GroupLag
	LagFailed string
	LagsAt    int64 // when the brokers were asked who is behind
	Groups    int   // in this process
}

// sessionLine is a session in a list.
type sessionLine struct {
	ID       string
	Changed  int64
	Open     bool
	WaitsFor string
	Step     int
	Queue    int
	Deadline int64
	User     string
	Gates    int
	Overdue  bool
}

func (r *request) lineOf(s *session) sessionLine {
	l := sessionLine{ID: s.id, Changed: s.changed, Gates: len(s.gates)}
	if s.waits != nil {
		l.Open, l.WaitsFor, l.Step, l.Queue = true, s.waits.WaitsFor, s.waits.Step, s.waits.queue
		l.Deadline, l.User = s.waits.deadline, s.waits.user
		l.Overdue = l.Deadline > 0 && l.Deadline < r.now.UnixMilli()
	}
	return l
}

func attention(r *request) {
	x := r.console.follower.index
	b := attentionPage{Partial: !r.everything()}
	b.Gates = short(r, listing[openGate]{Noun: "open gate", Empty: "No gate waits for a person", Page: "/gates"}, gateEntries(x))
	b.Overdue = short(r, listing[sessionLine]{Noun: "overdue turn", Empty: "No turn is overdue", Page: "/sessions", Parameters: []any{"state", "overdue"}},
		r.overdue(x))
	b.Waiting = short(r, listing[sessionLine]{Noun: "session", Empty: "No session waits", Page: "/sessions", Parameters: []any{"state", "open"}},
		r.sessionEntries(&x.waiting))
	b.Dead = short(r, listing[deliveryLine]{Noun: "dead delivery", Empty: "No delivery is dead", Page: "/deliveries", Parameters: []any{"status", "dead"}},
		r.deliveryEntries(x, delivery.StatusDead))
	x.mu.Lock()
	b.Letters = x.letters.notRequeued()
	x.mu.Unlock()
	if r.everything() {
		for _, g := range r.console.own() {
			if g.State != string(processors.Running) {
				b.Down = append(b.Down, g)
			}
		}
		all, at, err := r.console.lags.get(r.now)
		for _, g := range all {
			if g.Lag > 0 {
				b.Behind = append(b.Behind, g)
			}
		}
		b.LagFailed, b.LagsAt, b.Groups = err, at, len(r.console.config.Processors)
	}
	r.show(http.StatusOK, "attention", page{Title: "Attention", Section: "/", About: "sessions gates deliveries letters time", Body: b})
}

// sessionEntries are the sessions of a list that is ordered by when they changed.
func (r *request) sessionEntries(o *ordered[*session]) entries[*session, sessionLine] {
	return entries[*session, sessionLine]{
		of: o, place: sessionAt, cursor: func(s *session) (int64, string) { return s.changed, s.id },
		see: func(s *session) (sessionLine, string, bool) { return r.lineOf(s), s.id, true },
	}
}

// overdue are the sessions whose turn is overdue, the earliest deadline first.
func (r *request) overdue(x *index) entries[*session, sessionLine] {
	e := r.sessionEntries(&x.byDue)
	e.cursor = func(s *session) (int64, string) { return s.waits.deadline, s.id }
	e.in = func(s *session) bool { return s.waits.deadline < r.now.UnixMilli() }
	e.some = true
	return e
}

// sessionAt is a session of an ID, for a place in any list of sessions.
func sessionAt(ms int64, id string) *session {
	return &session{id: id, changed: ms, waits: &waits{deadline: ms}}
}

// short lists the first entries of a list.
func short[I, T any](r *request, l listing[T], e entries[I, T]) listing[T] {
	if l = listed(r, l, shortList, nil, e); l.Next != "" {
		l.Next = "more"
	}
	return l
}

// sessions lists sessions: those that wait, the longest wait first, or all, that changed last first.
func sessions(r *request) {
	if id := strings.TrimSpace(r.first("session")); id != "" {
		r.to("", "/session", "id", id)
		return
	}
	x := r.console.follower.index
	state, prefix := r.first("state"), r.first("prefix")
	l := listing[sessionLine]{Page: "/sessions", Parameters: []any{"state", state, "prefix", prefix}, Noun: "session", Empty: "No session"}
	e, begin := r.sessionEntries(&x.byChange), (**session)(nil)
	switch {
	case prefix != "": // in the order of their IDs
		first := sessionAt(0, prefix)
		begin = &first
		e.of, e.some = &x.byID, true
		e.cursor = func(s *session) (int64, string) { return 0, s.id }
		e.in = func(s *session) bool { return strings.HasPrefix(s.id, prefix) }
		e.see = func(s *session) (sessionLine, string, bool) { return r.lineOf(s), s.id, s.listed }
	case state == "open":
		e.of = &x.waiting
	case state == "overdue":
		e = r.overdue(x)
	}
	l = listed(r, l, pageSize, begin, e)
	r.show(http.StatusOK, "sessions", page{Title: "Sessions", Section: "/sessions", About: aboutSessions, Body: struct {
		State, Prefix string
		List          listing[sessionLine]
	}{state, prefix, l}})
}
