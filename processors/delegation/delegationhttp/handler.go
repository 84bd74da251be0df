package delegationhttp

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// DelegationsPath is the URL path that Handler serves, also with an ID behind it.
const DelegationsPath = "/api/delegations"

const (
	// maxID is the length of the longest ID of a delegation, in bytes.
	maxID       = 512
	defaultPage = 100
	maxPage     = 500
)

// Handler is the HTTP handler of an agent's delegations. It is safe for concurrent use and need not be closed. The caller owns the
// index. Connections and the headers of requests are limited by the http.Server: use package processors/httpserver.
type Handler struct {
	index    *Index
	config   Config
	entrance *entrance.Entrance
}

// New returns the HTTP handler of the delegations of an index. Without Config.Authenticate everyone may read all results, and
// New logs a warning. Its error wraps ErrConfig and joins all problems.
func New(index *Index, c Config) (*Handler, error) {
	var check bounds.Check
	if index == nil {
		check.Wrong("index", "is nil")
		index = &Index{}
	}
	c.Clock, c.Logger = cmp.Or(c.Clock, index.config.Clock), cmp.Or(c.Logger, index.config.Logger)
	c.complete(&check)
	e := entrance.New(&check, entrance.Config{
		Door: c.Door, Name: "delegations", Agent: index.agent, CORS: entrance.CORS{Methods: "GET, OPTIONS"},
	})
	if err := check.Err(ErrConfig); err != nil {
		return nil, err
	}
	entrance.WarnOpen(c.Door, index.agent, "delegation door is open: requests are not authenticated and may read every result")
	return &Handler{index: index, config: c, entrance: e}, nil
}

// ServeHTTP implements http.Handler. It answers other paths with 404.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rt, parts, known := entrance.Find([]entrance.Route{
		{Method: http.MethodGet, Path: "", Rights: auth.Read, Serve: h.list},
		{Method: http.MethodGet, Path: "/*", Rights: auth.Read, Serve: h.get},
	}, DelegationsPath, r.Method, r.URL.EscapedPath())
	if !known {
		http.NotFound(w, r)
		return
	}
	h.entrance.Serve(w, r, rt, parts, h.check, "Cache-Control", "no-store", "X-Content-Type-Options", "nosniff")
}

// check rejects a request about an ID that no delegation has, and any while the index is not ready.
func (h *Handler) check(r *request) (rejection answer, ok bool) {
	switch {
	case len(r.Parts) > 0 && len(r.Parts[0]) > maxID:
		return notFound(), false
	case !h.index.follows.IsReady():
		return notReady(), false
	}
	return answer{}, true
}

// list answers with the delegations of a session.
func (h *Handler) list(r *request) answer {
	session := r.URL.Query().Get("session_id")
	limit, ok := r.Limit(defaultPage, maxPage)
	switch {
	case session == "":
		return entrance.Failed(http.StatusBadRequest, "session_id is required")
	case !ok:
		return entrance.Failed(http.StatusBadRequest, "limit is no number above 0")
	}
	if rejection, ok := h.enter(r, session); !ok {
		return rejection
	}
	if err := h.index.records.CatchUp(r.Context()); err != nil {
		return h.unreadable(err)
	}
	return listAnswer(h.index.of(session, limit))
}

// get answers with one delegation.
func (h *Handler) get(r *request) answer {
	session, id := r.URL.Query().Get("session_id"), r.Parts[0]
	found := h.find(r, session, id)
	if len(found) == 0 || !found[0].ended() {
		if err := h.index.records.CatchUp(r.Context()); err != nil {
			return h.unreadable(err)
		}
		found = h.find(r, session, id)
	}
	switch {
	case len(found) == 0:
		return notFound()
	case len(found) > 1:
		return entrance.Failed(http.StatusConflict, "Several sessions have a delegation with this ID: name one with session_id")
	}
	e := found[0]
	if rejection, ok := h.enter(r, e.SessionID); !ok {
		return rejection
	}
	if !e.ended() {
		return delegationAnswer(e.Delegation)
	}
	d, ok, err := h.index.read(r.Context(), r.Key(), e)
	switch {
	case err != nil:
		return h.unreadable(err)
	case !ok:
		return notFound() // the topic keeps it no longer
	}
	return delegationAnswer(d)
}

// find returns the delegations with an ID that the caller may see.
func (h *Handler) find(r *request, session, id string) (found []entry) {
	for _, e := range h.index.named(session, id) {
		if r.Caller.Allowed(e.SessionID) {
			found = append(found, e)
		}
	}
	return found
}

// enter enters a session. One that the caller may not use is answered as one without the delegation.
func (h *Handler) enter(r *request, session string) (rejection answer, ok bool) {
	refusal := r.Session(session)
	switch {
	case refusal == nil:
		return answer{}, true
	case refusal.Status == http.StatusForbidden:
		return notFound(), false
	}
	return refusal.Answer(), false
}

// unreadable returns the answer to a request for which the brokers cannot be asked.
func (h *Handler) unreadable(err error) answer {
	if !errors.Is(err, context.Canceled) {
		h.config.Logger.Warn("delegation door cannot read the delegations", zap.String("agent", h.index.agent), zap.Error(err))
	}
	return notReady()
}
