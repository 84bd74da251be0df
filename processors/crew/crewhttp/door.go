package crewhttp

import (
	"cmp"
	"net/http"
	"slices"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/topics"
)

// SocketPath is the path of the WebSocket.
const SocketPath = "/ws"

// maxID is the length of the longest ID in a path or a frame, in bytes.
const maxID = 256

// Handler is the HTTP handler of the crews of a catalog's agent: the WebSocket at SocketPath and the requests below the prefix.
// It is safe for concurrent use and need not be closed. The caller owns the index and the publisher. Connections and the headers
// of requests are limited by the http.Server: use package processors/httpserver, and set no WriteTimeout below 60 s.
type Handler struct {
	topics   topics.Catalog
	index    *Index
	to       processors.Publisher
	config   Config
	requests *entrance.Entrance
	sockets  *entrance.Entrance
	messages *windows // of each caller
	spawns   *windows
	routes   []entrance.Route
}

// New returns the HTTP handler of the crews of an index. What callers ask for is written to the publisher. Without
// Config.Authenticate everyone may do everything but pages of other origins, and New logs a warning. Its error wraps ErrConfig and
// joins all problems.
func New(index *Index, to processors.Publisher, c Config) (*Handler, error) {
	var check bounds.Check
	if index == nil {
		check.Wrong("index", "is nil")
		index = &Index{}
	}
	if to == nil {
		check.Wrong("publisher", "is nil")
	}
	own := index.config
	c.Prefix, c.Roles, c.Clock, c.Logger = own.Prefix, own.Roles, cmp.Or(c.Clock, own.Clock), cmp.Or(c.Logger, own.Logger)
	c.complete(&check)
	agent := index.catalog.Agent
	h := &Handler{
		topics: index.catalog, index: index, to: to, config: c,
		messages: newWindows(maxMessages, messagesWindow), spawns: newWindows(maxSpawns, spawnsWindow),
	}
	h.routes = h.allRoutes()
	h.requests, h.sockets = c.entrances(&check, agent)
	if err := check.Err(ErrConfig); err != nil {
		return nil, err
	}
	if c.Authenticate == nil {
		c.Logger.Warn("crew door is open: requests are not authenticated and may control every crew", zap.String("agent", agent))
	}
	return h, nil
}

// ServeHTTP implements http.Handler. It blocks until a WebSocket client has disconnected. Other paths get 404.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == SocketPath {
		h.serveSocket(w, withCredential(r, true))
		return
	}
	rt, parts, known := entrance.Find(h.routes, h.config.under("/"), r.Method, r.URL.EscapedPath())
	if !known || slices.ContainsFunc(parts, func(p string) bool { return len(p) > maxPath }) {
		write(w, entrance.Failed(http.StatusNotFound, "Not found"))
		return
	}
	h.requests.Serve(w, withCredential(r, false), rt, parts, h.read, "Cache-Control", "no-store")
}

// read reads the body of a request and checks its key. It rejects all while the index is not ready.
func (h *Handler) read(r *request) (rejection answer, ok bool) {
	if r.Method != http.MethodGet {
		body, refusal := r.ReadBody(r.W)
		if refusal != nil {
			return refusal.Answer(), false
		}
		r.Body = body
	}
	if !h.index.follows.IsReady() {
		return notReady(), false
	}
	if _, ok := entrance.IdempotencyKey(r.Request); !ok && r.Method != http.MethodGet {
		return badBody(errKey), false
	}
	return answer{}, true
}

// allRoutes are the requests below the prefix.
func (h *Handler) allRoutes() []entrance.Route {
	return []entrance.Route{
		{Method: http.MethodGet, Path: "agents", Rights: auth.Read, Serve: h.listAgents},
		{Method: http.MethodPost, Path: "agents", Rights: auth.Write, Serve: h.spawn},
		{Method: http.MethodGet, Path: "agents/*", Rights: auth.Read, Serve: h.getAgent},
		{Method: http.MethodDelete, Path: "agents/*", Rights: auth.Control, Serve: h.terminate},
		{Method: http.MethodPost, Path: "agents/*/terminate", Rights: auth.Control, Serve: h.terminate},
		{Method: http.MethodPost, Path: "agents/*/message", Rights: auth.Write, Serve: h.message},
		{Method: http.MethodPost, Path: "agents/*/input", Rights: auth.Write, Serve: h.input},
		{Method: http.MethodPost, Path: "agents/*/interrupt", Rights: auth.Control, Serve: h.interrupt},
		{Method: http.MethodPost, Path: "agents/*/restart", Rights: auth.Control, Serve: h.restart},
		{Method: http.MethodPost, Path: "agents/*/autopilot", Rights: auth.Control, Serve: h.autopilot},
		{Method: http.MethodPost, Path: "agents/*/permission", Rights: auth.Answer, Serve: h.permission},
		{Method: http.MethodGet, Path: "agents/*/permissions/*", Rights: auth.Read, Serve: h.wholePermission},
		{Method: http.MethodGet, Path: "roles", Rights: auth.Read, Serve: h.listRoles},
		{Method: http.MethodGet, Path: "crews", Rights: auth.Read, Serve: h.listCrews},
		{Method: http.MethodPost, Path: "crews", Rights: auth.Control, Serve: h.configure},
		{Method: http.MethodPost, Path: "crews/*/message", Rights: auth.Write, Serve: h.broadcast},
		{Method: http.MethodGet, Path: "coordination/locks", Rights: auth.Read, Serve: h.listLocks},
		{Method: http.MethodPost, Path: "coordination/locks", Rights: auth.Control, Serve: h.lock},
		{Method: http.MethodDelete, Path: "coordination/locks/*", Rights: auth.Control, Serve: h.unlock},
		{Method: http.MethodGet, Path: "coordination/activity", Rights: auth.Read, Serve: h.listActivity},
		{Method: http.MethodGet, Path: "decisions", Rights: auth.Read, Serve: h.listDecisions},
		{Method: http.MethodPost, Path: "decisions/batch", Rights: auth.Answer, Serve: h.decideAll},
		{Method: http.MethodPost, Path: "decisions/*/confirm", Rights: auth.Answer, Serve: h.decide},
		{Method: http.MethodPost, Path: "decisions/*/reject", Rights: auth.Answer, Serve: h.decide},
		{Method: http.MethodPost, Path: "decisions/*/dismiss", Rights: auth.Answer, Serve: h.decide},
		{Method: http.MethodGet, Path: "groups", Rights: auth.Read, Serve: h.listGroups},
		{Method: http.MethodGet, Path: "groups/*/messages", Rights: auth.Read, Serve: h.listGroupMessages},
		{Method: http.MethodPost, Path: "groups/*/messages", Rights: auth.Write, Serve: h.groupSay},
		{Method: http.MethodPost, Path: "groups/*/messages/*/reactions", Rights: auth.Write, Serve: h.react},
		{Method: http.MethodDelete, Path: "groups/*/messages/*/reactions/*", Rights: auth.Write, Serve: h.unreact},
		{Method: http.MethodGet, Path: "bus/messages", Rights: auth.Read, Serve: h.listBus},
		{Method: http.MethodGet, Path: "delegations", Rights: auth.Read, Serve: h.listDelegations},
		{Method: http.MethodGet, Path: "tasks", Rights: auth.Read, Serve: h.listTasks},
		{Method: http.MethodPost, Path: "tool-auto-allow/*", Rights: auth.Control, Serve: h.allowTool},
		{Method: http.MethodDelete, Path: "tool-auto-allow/*", Rights: auth.Control, Serve: h.disallowTool},
		{Method: http.MethodPost, Path: "system/pause", Rights: auth.Control, Serve: h.pause},
		{Method: http.MethodPost, Path: "system/resume", Rights: auth.Control, Serve: h.pause},
	}
}
