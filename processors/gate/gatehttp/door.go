package gatehttp

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
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
	routes   []entrance.Route
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
	entrance.WarnOpen(c.Door, index.agent, "gate door is open: requests are not authenticated and may decide every gate")
	h := &Handler{
		topics: catalog, index: index, to: to, config: c, entrance: e, scans: entrance.NewSlots(maxScans),
	}
	h.routes = h.allRoutes()
	return h, nil
}

// allRoutes are the requests at GatesPath and below.
func (h *Handler) allRoutes() []entrance.Route {
	return []entrance.Route{
		{Method: http.MethodGet, Path: "", Rights: auth.Read, Serve: h.list},
		{Method: http.MethodGet, Path: "/grants", Rights: auth.Control, Serve: h.listGrants},
		{Method: http.MethodDelete, Path: "/grants/*", Rights: auth.Control, Serve: h.revoke},
		{Method: http.MethodGet, Path: "/*", Rights: auth.Read, Serve: h.get},
		{Method: http.MethodPost, Path: "/*/decision", Rights: auth.Answer, Serve: h.decide},
	}
}

// ServeHTTP implements http.Handler. It answers other paths with 404.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rt, parts, known := entrance.Find(h.routes, GatesPath, r.Method, r.URL.EscapedPath())
	if !known {
		http.NotFound(w, r)
		return
	}
	h.entrance.Serve(w, r, rt, parts, h.check, "Cache-Control", "no-store")
}

// check rejects a request about an ID that no gate has, and any while the index is not ready.
func (h *Handler) check(r *request) (rejection answer, ok bool) {
	switch {
	case len(r.Parts) > 0 && len(r.Parts[0]) > maxID:
		return notFound(), false
	case !h.index.follows.IsReady():
		return notReady(), false
	}
	return answer{}, true
}

// find enters the session of a gate. ok is false if the request must be answered with rejection. A gate that the caller may
// not use is answered like one that does not exist, after the same work.
func (h *Handler) find(r *request, id string) (session string, rejection answer, ok bool) {
	session, known := h.index.sessionOf(id)
	var requested bool
	if !known || !r.Caller.Allowed(session) {
		var err error
		if session, known, requested, err = h.index.look(r.Context(), r.Key(), id, r.Caller.Allowed); err != nil {
			return "", h.unreadable(err), false
		}
	}
	if allowed := known && r.Caller.Allowed(session); !allowed {
		if known {
			r.Refuse(&entrance.Refusal{Status: http.StatusForbidden, Text: "the gate is of a session that the caller may not use"})
		}
		if requested || !h.index.complete() {
			return "", notReady(), false
		}
		return "", notFound(), false
	}
	if refusal := r.Session(session); refusal != nil {
		return "", refusal.Answer(), false
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
	return entrance.Failed(http.StatusBadRequest, "wait is not a time such as 55s")
}
