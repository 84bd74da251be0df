package host

import (
	"cmp"
	"context"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/topics"
)

// asks are the agent's requests that are not answered: those that wait for a person, and those that are carried out.
type asks struct {
	mu      sync.Mutex
	last    int64
	closed  bool
	open    map[string]ask // by the request_id of the host
	working sync.WaitGroup
}

// ask is a request of the agent. It is answered by the one who removes it from asks.
type ask struct {
	id     string // of the host
	rpcID  string
	decide func(crewbody.Answer) // nil: it is carried out
	cancel func(*rpcError)       // ends the request
}

// openAsk adds a request and returns the host's ID of it. It refuses the request and returns false if too many are open.
func (r *run) openAsk(m received, q ask) (id string, ok bool) {
	a := &r.asks
	q.rpcID = string(m.ID)
	a.mu.Lock()
	if ok = !a.closed && len(a.open) < maxAtOnce; ok {
		a.last++
		id = "ask-" + strconv.FormatInt(a.last, 10)
		q.id = id
		a.open[id] = q
		if q.decide == nil {
			a.working.Add(1)
		}
	}
	a.mu.Unlock()
	if !ok {
		r.refuse(m.ID, &rpcError{codeInternal, "too many requests are open"})
	}
	return id, ok
}

// remove returns the request with an ID, if it is still open.
func (a *asks) remove(id string) []ask { return a.take(func(q ask) bool { return q.id == id }) }

// decide passes a decision on. A request that is not open, such as one of an earlier process, has no decision.
func (a *asks) decide(answer crewbody.Answer) {
	for _, q := range a.take(func(q ask) bool { return q.id == answer.RequestID && q.decide != nil }) {
		q.decide(answer)
	}
}

// close waits until nothing is carried out any more. The contexts of what is carried out must have ended.
func (a *asks) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.working.Wait()
}

// cancelAll cancels what waits for a person.
func (a *asks) cancelAll() {
	for _, q := range a.take(func(q ask) bool { return q.decide != nil }) {
		q.cancel(nil)
	}
}

// withdraw cancels a request that the agent does not want answered any more.
func (a *asks) withdraw(rpcID string) {
	for _, q := range a.take(func(q ask) bool { return q.rpcID == rpcID }) {
		q.cancel(&rpcError{codeCancelled, "request cancelled"})
	}
}

func (a *asks) take(which func(ask) bool) (taken []ask) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, q := range a.open {
		if which(q) {
			taken = append(taken, q)
			delete(a.open, id)
		}
	}
	return taken
}

// askPermission passes a session/request_permission on. It is answered by a crewbody.Answer.
func (r *run) askPermission(m received) {
	var q struct {
		SessionID string     `json:"sessionId"`
		ToolCall  topics.Raw `json:"toolCall"`
		Options   topics.Raw `json:"options"`
	}
	if json.Unmarshal(m.Params, &q) != nil || len(q.SessionID) > maxSessionID || len(q.Options) > maxField || tooDeep(q.Options) {
		r.refuse(m.ID, &rpcError{codeInvalidParams, "invalid params"})
		return
	}
	if !askable(q.ToolCall) {
		r.refuse(m.ID, errTooLarge)
		return
	}
	outcome := func(o map[string]any) { r.answer(m.ID, map[string]any{"outcome": o}) }
	id, ok := r.openAsk(m, ask{
		decide: func(a crewbody.Answer) {
			if a.OptionID == "" {
				outcome(map[string]any{"outcome": "cancelled"})
			} else {
				outcome(map[string]any{"outcome": "selected", "optionId": a.OptionID})
			}
		},
		cancel: func(e *rpcError) {
			if e != nil {
				r.refuse(m.ID, e)
			} else {
				outcome(map[string]any{"outcome": "cancelled"})
			}
		},
	})
	if ok {
		r.question(crewbody.Permission{
			Run: r.id, RequestID: id, SessionID: q.SessionID, ToolCall: q.ToolCall, Options: q.Options,
		})
	}
}

// question queues a request for a person. One that does not fit into a record is refused: a smaller record would hide from the
// person what is asked.
func (r *run) question(p crewbody.Permission) {
	r.put(item{body: p, size: sizeOf(p), lost: func() {
		for _, q := range r.asks.remove(p.RequestID) {
			q.cancel(errTooLarge)
		}
	}})
}

var errTooLarge = &rpcError{codeInvalidParams, "the request is too large to be shown to a person"}

// request handles a request that the host carries out: at once, after a person's decision, or not at all. shown are the
// arguments that the person sees.
func request[Q any](r *run, m received, rule Rule, shown func(Q) any, do func(context.Context, Q) (any, error)) {
	var q Q
	if json.Unmarshal(m.Params, &q) != nil {
		r.refuse(m.ID, &rpcError{codeInvalidParams, "invalid params"})
		return
	}
	denied := &rpcError{codeNotPermitted, "not permitted"}
	if rule == Deny {
		r.refuse(m.ID, denied)
		return
	}
	carryOut := func() {
		ctx, cancel := context.WithCancel(r.life)
		id, ok := r.openAsk(m, ask{cancel: func(e *rpcError) {
			cancel()
			r.refuse(m.ID, e)
		}})
		if !ok {
			cancel()
			return
		}
		go func() {
			defer r.asks.working.Done()
			defer cancel()
			result, err := do(ctx, q)
			if len(r.asks.remove(id)) == 0 {
				return // withdrawn, and answered
			}
			if err != nil {
				r.refuse(m.ID, err)
			} else {
				r.answer(m.ID, result)
			}
		}()
	}
	if rule == Allow {
		carryOut()
		return
	}
	args := encoded(shown(q))
	if !askable(args) {
		r.refuse(m.ID, errTooLarge)
		return
	}
	id, ok := r.openAsk(m, ask{
		decide: func(a crewbody.Answer) {
			if a.Allowed {
				carryOut()
			} else {
				r.refuse(m.ID, denied)
			}
		},
		cancel: func(e *rpcError) {
			r.refuse(m.ID, cmp.Or(e, &rpcError{codeCancelled, "the turn was cancelled"}))
		},
	})
	if !ok {
		return
	}
	r.session.mu.Lock()
	session := r.session.id
	r.session.mu.Unlock()
	r.question(crewbody.Permission{Run: r.id, RequestID: id, SessionID: session, Method: m.Method, Args: args})
}
