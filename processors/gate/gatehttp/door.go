package gatehttp

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/topics"
)

// The URL paths that Handler serves, each also with what follows it in the documentation of the package. A gate whose ID is
// "grants" cannot be reached.
const (
	GatesPath  = "/api/gates"
	GrantsPath = "/api/gates/grants"
)

const (
	// publishTimeout is how long a request waits for the acknowledgement of the brokers.
	publishTimeout = 30 * time.Second
	// maxScans is how many requests list the gates of all sessions at the same time.
	maxScans = 2
	// maxID is the length of the longest ID of a gate, in bytes.
	maxID = 256
)

// Handler is the HTTP handler of an agent's gates. It is safe for concurrent use and need not be closed. The caller owns the
// index and the publisher. Connections and the headers of requests are limited by the http.Server: use package
// processors/httpserver, and set no WriteTimeout below 60 s.
type Handler struct {
	topics   topics.Catalog
	index    *Index
	to       processors.Publisher
	config   Config
	entrance *entrance.Entrance
	scans    *entrance.Slots
}

// New returns the HTTP handler of the gates of an index. Decisions are written to the publisher. Without Config.Authenticate
// everyone may decide, and New logs a warning. Its error wraps ErrConfig and joins all problems.
func New(index *Index, to processors.Publisher, c Config) (*Handler, error) {
	var check bounds.Check
	if index == nil {
		check.Wrong("index", "is nil")
		index = &Index{}
	}
	if to == nil {
		check.Wrong("publisher", "is nil")
	}
	c.Clock, c.Logger = cmp.Or(c.Clock, index.config.Clock), cmp.Or(c.Logger, index.config.Logger)
	c.complete(&check)
	e := entrance.New(&check, entrance.Config{
		Door: c.Door, Name: "gate", Agent: index.agent, CORS: entrance.CORS{Methods: "GET, POST, DELETE, OPTIONS"},
	})
	if err := check.Err(ErrConfig); err != nil {
		return nil, err
	}
	catalog, err := topics.For(index.agent)
	if err != nil {
		return nil, errors.Join(ErrConfig, err)
	}
	if c.Authenticate == nil {
		c.Logger.Warn("gate door is open: requests are not authenticated and may decide every gate", zap.String("agent", index.agent))
	}
	return &Handler{
		topics: catalog, index: index, to: to, config: c, entrance: e, scans: entrance.NewSlots(maxScans),
	}, nil
}

// request is one request and its visit.
type request struct {
	*http.Request
	*entrance.Visit
	w http.ResponseWriter
}

// route is what a path stands for.
type route struct {
	method string
	rights auth.Rights
	serve  func(h *Handler, r *request, id string) answer
	id     string
}

// routeOf returns what a path stands for; ok is false for an unknown one.
func routeOf(escaped string) (rt route, ok bool) {
	rest, ok := strings.CutPrefix(escaped, GatesPath)
	if !ok || rest == "" {
		return route{http.MethodGet, auth.Read, (*Handler).list, ""}, ok
	}
	parts := strings.Split(rest, "/")[1:]
	if rest[0] != '/' {
		return route{}, false
	}
	for i, p := range parts {
		text, err := url.PathUnescape(p)
		if err != nil || text == "" {
			return route{}, false
		}
		parts[i] = text
	}
	switch {
	case len(parts) == 1 && parts[0] == "grants":
		return route{http.MethodGet, auth.Control, (*Handler).listGrants, ""}, true
	case len(parts) == 2 && parts[0] == "grants":
		return route{http.MethodDelete, auth.Control, (*Handler).revoke, parts[1]}, true
	case len(parts) == 1:
		return route{http.MethodGet, auth.Read, (*Handler).get, parts[0]}, true
	case len(parts) == 2 && parts[1] == "decision":
		return route{http.MethodPost, auth.Answer, (*Handler).decide, parts[0]}, true
	}
	return route{}, false
}

// ServeHTTP implements http.Handler. It answers other paths with 404.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rt, ok := routeOf(r.URL.EscapedPath())
	if !ok {
		http.NotFound(w, r)
		return
	}
	v, refusal := h.entrance.Open(w, r)
	defer v.Close()
	if refusal != nil {
		refused(w, refusal).write(w)
		return
	}
	h.serve(&request{r, v, w}, rt).write(w)
}

func (h *Handler) serve(r *request, rt route) answer {
	switch {
	case r.Method == http.MethodOptions:
		return answer{status: http.StatusNoContent}
	case r.Method != rt.method:
		return errorAnswer(http.StatusMethodNotAllowed, "Method not allowed")
	}
	if refusal := r.Authenticate(rt.rights); refusal != nil {
		return refused(r.w, refusal)
	}
	switch {
	case len(rt.id) > maxID:
		return notFound()
	case !h.index.follows.IsReady():
		return notReady()
	}
	return rt.serve(h, r, rt.id)
}

// find enters the session of a gate. ok is false if the request must be answered with rejection. A gate that the caller may
// not use is answered like one that does not exist, after the same work.
func (h *Handler) find(r *request, id string) (session string, rejection answer, ok bool) {
	session, known := h.index.sessionOf(id)
	if !known || !r.Caller.Allowed(session) {
		if err := h.index.rows.CatchUp(r.Context()); err != nil {
			return "", h.unreadable(err), false
		}
		session, known = h.index.sessionOf(id)
	}
	if allowed := known && r.Caller.Allowed(session); !allowed {
		if known {
			r.Refuse(&entrance.Refusal{Status: http.StatusForbidden, Text: "the gate is of a session that the caller may not use"})
		}
		if !h.index.complete() {
			return "", notReady(), false
		}
		return "", notFound(), false
	}
	if refusal := r.Session(session); refusal != nil {
		return "", refused(r.w, refusal), false
	}
	return session, answer{}, true
}

// unreadable returns the answer to a request for which the index cannot read a row.
func (h *Handler) unreadable(err error) answer {
	if !errors.Is(err, context.Canceled) {
		h.config.Logger.Warn("gate door cannot read the gates", zap.String("agent", h.topics.Agent), zap.Error(err))
	}
	return notReady()
}

// await blocks until done is closed, and reports whether it was: not if the time is over, the client has disconnected, or the
// index has stopped.
func (h *Handler) await(ctx context.Context, done <-chan struct{}, wait time.Duration) bool {
	select {
	case <-done:
		return true
	default:
	}
	if wait <= 0 {
		return false
	}
	timer := h.config.Clock.NewTicker(wait)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C():
	case <-ctx.Done():
	case <-h.index.follows.Ended:
	}
	return false
}

// waitOf returns the wait that a request asks for, at most maxWait.
func waitOf(query url.Values, unset time.Duration) (time.Duration, bool) {
	text := query.Get("wait")
	if text == "" {
		return unset, true
	}
	d, err := time.ParseDuration(text)
	return min(d, maxWait), err == nil && d >= 0
}

func badWait() answer {
	return errorAnswer(http.StatusBadRequest, "wait is not a time such as 55s")
}

// publish writes the record of a request. A disconnect of the client does not cancel it: it may be written already.
func (h *Handler) publish(r *request, record processors.Outbound) (rejection answer, ok bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), publishTimeout)
	defer cancel()
	err := h.to.Publish(ctx, record)
	switch {
	case err == nil:
		return answer{}, true
	case errors.Is(err, processors.ErrTooLarge):
		return errorAnswer(http.StatusRequestEntityTooLarge, "Request is too large for a record"), false
	}
	h.config.Logger.Error("request failed: its record may not have been written", zap.String("door", "gate"),
		zap.String("agent", h.topics.Agent), zap.String("topic", record.Topic), zap.Error(err))
	return internalError(), false
}
