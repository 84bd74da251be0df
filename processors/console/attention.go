package console

import (
	"net/http"
	"strings"

	"github.com/turntable-streams/turntable/processors"
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
	x, now := r.console.follower.index, r.now.UnixMilli()
	x.mu.Lock()
	b := attentionPage{
		Gates:   short(r, "open gate", "No gate waits for a person", &x.gates, func(g *openGate) (openGate, bool) { return *g, r.Caller.Allowed(g.session) }),
		Overdue: listing[sessionLine]{First: 1, Noun: "overdue turn", Empty: "No turn is overdue", Total: -1, Page: "/sessions", Parameters: []any{"state", "overdue"}},
		Waiting: short(r, "session", "No session waits", &x.waiting, r.sessionLine),
		Dead:    short(r, "dead delivery", "No delivery is dead", &x.dead, func(d *openDelivery) (deliveryLine, bool) { return r.deliveryOf(d), r.Caller.Allowed(d.session) }),
		Letters: x.letters.byTime.n, Partial: !r.everything(),
	}
	b.Gates.Page, b.Waiting.Page, b.Waiting.Parameters = "/gates", "/sessions", []any{"state", "open"}
	b.Dead.Page, b.Dead.Parameters = "/deliveries", []any{"status", "dead"}
	x.byDue.from(nil, func(s *session) bool {
		if s.waits.deadline >= now {
			return false
		}
		if len(b.Overdue.Items) == shortList {
			b.Overdue.Next = "more"
			return false
		}
		if r.Caller.Allowed(s.id) {
			b.Overdue.Items = append(b.Overdue.Items, r.lineOf(s))
		}
		return true
	})
	x.mu.Unlock()
	if r.everything() {
		for _, g := range r.console.own() {
			if g.State != string(processors.Running) {
				b.Down = append(b.Down, g)
			}
		}
		all, _, err := r.console.lags.get(r.now)
		for _, g := range all {
			if g.Lag > 0 {
				b.Behind = append(b.Behind, g)
			}
		}
		b.LagFailed = err
	}
	r.show(http.StatusOK, "attention", page{Title: "Attention", Section: "/", About: "sessions gates deliveries letters", Body: b})
}

// sessionLine returns the line of a session that the caller may use.
func (r *request) sessionLine(s *session) (sessionLine, bool) {
	return r.lineOf(s), r.Caller.Allowed(s.id)
}

// short lists the first entries of a list.
func short[I, T any](r *request, noun, empty string, o *ordered[I], take func(I) (T, bool)) listing[T] {
	l := listing[T]{First: 1, Noun: noun, Empty: empty, Total: o.n}
	if r.Caller.MayUse != nil {
		l.Total = -1
	}
	looked := 0
	o.from(nil, func(v I) bool {
		if len(l.Items) == shortList || looked == scanLimit {
			l.Next = "more"
			return false
		}
		looked++
		if t, ok := take(v); ok {
			l.Items = append(l.Items, t)
		}
		return true
	})
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
	place := func(ms int64, id string) *session { return &session{id: id, changed: ms, waits: &waits{deadline: ms}} }
	cursor := func(s *session) (int64, string) { return s.changed, s.id }
	take := r.sessionLine
	x.mu.Lock()
	o := &x.byChange
	switch {
	case prefix != "":
		o = &x.byID
		take = func(s *session) (sessionLine, bool) {
			return r.lineOf(s), s.listed && strings.HasPrefix(s.id, prefix) && r.Caller.Allowed(s.id)
		}
		l = prefixed(r, l, o, prefix, take)
	case state == "open":
		o = &x.waiting
		l = listed(r, l, o, pageSize, place, cursor, take)
	case state == "overdue":
		o = &x.byDue
		cursor = func(s *session) (int64, string) { return s.waits.deadline, s.id }
		take = func(s *session) (sessionLine, bool) {
			line := r.lineOf(s)
			return line, line.Overdue && r.Caller.Allowed(s.id)
		}
		l = listed(r, l, o, pageSize, place, cursor, take)
	default:
		l = listed(r, l, o, pageSize, place, cursor, take)
	}
	l.Total = -1
	if r.Caller.MayUse == nil && prefix == "" && state != "overdue" {
		l.Total = o.n
	}
	x.mu.Unlock()
	r.show(http.StatusOK, "sessions", page{Title: "Sessions", Section: "/sessions", About: aboutSessions, Body: struct {
		State, Prefix string
		List          listing[sessionLine]
	}{state, prefix, l}})
}

// prefixed lists the sessions whose IDs begin with a text, in the order of their IDs.
func prefixed(r *request, l listing[sessionLine], o *ordered[*session], prefix string, take func(*session) (sessionLine, bool)) listing[sessionLine] {
	begin := prefix
	after := r.first("after")
	if strings.HasPrefix(after, prefix) {
		begin = after
	}
	l.First = 1
	place, looked, at := &session{id: begin}, 0, ""
	o.from(&place, func(s *session) bool {
		switch {
		case s.id == after:
			return true
		case !strings.HasPrefix(s.id, prefix):
			return false
		case len(l.Items) == pageSize || looked == scanLimit:
			l.Next = at
			return false
		}
		looked++
		at = s.id
		if line, ok := take(s); ok {
			l.Items = append(l.Items, line)
		}
		return true
	})
	return l
}
