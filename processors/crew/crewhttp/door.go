package crewhttp

import (
	"cmp"
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/crew/internal/team"
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
	entrance.WarnOpen(c.Door, agent, "crew door is open: requests are not authenticated and may control every crew")
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
		{Method: http.MethodPost, Path: "tool-auto-allow/*", Rights: auth.Control, Serve: h.grant},
		{Method: http.MethodDelete, Path: "tool-auto-allow/*", Rights: auth.Control, Serve: h.grant},
		{Method: http.MethodPost, Path: "system/pause", Rights: auth.Control, Serve: h.pause},
		{Method: http.MethodPost, Path: "system/resume", Rights: auth.Control, Serve: h.pause},
	}
}

// ErrConfig is wrapped by the errors of New, NewIndex and Index.Run about an invalid agent name, configuration or connection setting.
var ErrConfig = errors.New("crewhttp: invalid configuration")

// Config configures NewIndex and New. Fields that are zero have their defaults. NewIndex uses Prefix, Roles, RowLimit, History,
// TextBuffer, Clock and Logger. New uses the other fields and those of its index; its own Clock and Logger come before these.
type Config struct {
	// Door is the configuration of requests and sockets. The package documentation says which rights a request needs, and in which
	// ways browsers can send the credential that Authenticate finds in the header Authorization; a WebSocket of a caller that it
	// refuses is closed with StatusUnauthorized. Origins have no "*". Scripts may send the headers Authorization and Idempotency-Key.
	// Concurrency does not count WebSockets. In Limits, a session is a crew (default: 64 open requests, 50 per second, a burst of 200),
	// and sockets and requests are counted separately.
	auth.Door
	// Prefix is the path before the paths of requests (default /api). It begins with "/" and does not end with it; "/" serves requests
	// at the root. The path of the WebSocket is always /ws.
	Prefix string
	// Roles are the roles that agents can have (default: those of package crew). They must be those of the crew's group. A request to
	// spawn an agent of another role is answered with 400.
	Roles []topics.CrewRole
	// RowLimit is how many agents, crews and repositories an Index has (default 10,000, at least 1). Over the limit, agents that have
	// ended are forgotten, those that were changed first. If there are none, the Index logs an error and leaves new ones out.
	RowLimit int
	// History is what an Index remembers of past events.
	History History
	// TextBuffer is how many bytes of the newest text of each agent an Index keeps for clients that subscribe later (default 64 KiB, at
	// least 1).
	TextBuffer int
	// ClientLimit is how many WebSocket clients may be connected (default 4096, at least 1). Others get status 503.
	ClientLimit int
	// QueueFrames and QueueBytes are how many frames, and bytes of frames, may wait for a client (default 1024 and 8 MiB, at least 1).
	// A single frame may have any size. A client for which more waits is disconnected with status 1013 and a reason.
	//
	// An init frame with the events that follow it, and the events with which a client resumes, do not count, so a client that has
	// missed many events can resume. The events of several subjects are at most as many bytes together: see the package documentation.
	QueueFrames, QueueBytes int
	// FrameLimit is the maximum size of the frames that clients send, in bytes (default 64 KiB, at least 1). A client that sends a
	// longer one is disconnected with status 1009.
	FrameLimit int64
	// PingInterval is how often clients are pinged (default 30 s), PongTimeout how long they may take to answer (default 30 s), and
	// WriteTimeout how long the write of a frame may take (default 10 s), all at least 1 ms. A client that exceeds one is disconnected.
	PingInterval, PongTimeout, WriteTimeout time.Duration
	// DecisionWait is how long the answer to a permission request waits for the outcome (default 5 s, at most 55 s; negative: not at
	// all). After it, the request is answered with 202.
	DecisionWait time.Duration
}

// History limits what an Index remembers of the past events, with which clients resume. Zero fields have their defaults.
type History struct {
	// Events and Bytes limit the events of one agent, crew or repository (default 1000 and 256 KiB).
	Events, Bytes int
	// TotalBytes limits the events of all of them (default 64 MiB). At the limit, the one that was silent for the longest
	// time loses its events.
	TotalBytes int
	// Window is how far back an Index that starts reads the events that were written before (default 1 hour).
	Window time.Duration
}

// maxWait is the longest wait of a request for an outcome.
const maxWait = 55 * time.Second

func (c *Config) complete(check *bounds.Check) {
	entrance.Complete(check, &c.Door)
	if slices.Contains(c.Origins, entrance.AnyOrigin) {
		check.Wrong("Origins", "has %q, want scheme://host", entrance.AnyOrigin)
	}
	switch {
	case c.Prefix == "":
		c.Prefix = "/api"
	case c.Prefix != path.Clean(c.Prefix) || c.Prefix[0] != '/':
		check.Wrong("Prefix", "is %q, want a path such as /api", c.Prefix)
	}
	if len(c.Roles) == 0 {
		c.Roles = team.Roles()
	}
	bounds.AtLeast(check, "RowLimit", &c.RowLimit, 10_000, 1)
	bounds.AtLeast(check, "History.Events", &c.History.Events, 1000, 1)
	bounds.AtLeast(check, "History.Bytes", &c.History.Bytes, 256<<10, 1)
	bounds.AtLeast(check, "History.TotalBytes", &c.History.TotalBytes, 64<<20, 1)
	bounds.AtLeast(check, "History.Window", &c.History.Window, time.Hour, 1)
	bounds.AtLeast(check, "TextBuffer", &c.TextBuffer, 64<<10, 1)
	bounds.AtLeast(check, "ClientLimit", &c.ClientLimit, 4096, 1)
	bounds.AtLeast(check, "QueueFrames", &c.QueueFrames, 1024, 1)
	bounds.AtLeast(check, "QueueBytes", &c.QueueBytes, 8<<20, 1)
	bounds.AtLeast(check, "FrameLimit", &c.FrameLimit, 64<<10, 1)
	bounds.AtLeast(check, "PingInterval", &c.PingInterval, 30*time.Second, time.Millisecond)
	bounds.AtLeast(check, "PongTimeout", &c.PongTimeout, 30*time.Second, time.Millisecond)
	bounds.AtLeast(check, "WriteTimeout", &c.WriteTimeout, 10*time.Second, time.Millisecond)
	bounds.OrNone(&c.DecisionWait, 5*time.Second)
	bounds.Between(check, "DecisionWait", &c.DecisionWait, 0, -1, maxWait)
}

// under returns a path below the prefix.
func (c *Config) under(path string) string { return strings.TrimSuffix(c.Prefix, "/") + path }

// entrances returns the entrances of requests and of sockets.
func (c *Config) entrances(check *bounds.Check, agent string) (requests, sockets *entrance.Entrance) {
	e := entrance.Config{
		Door: c.Door, Name: "crew", Agent: agent, Defaults: auth.Limits{Session: auth.Share{Open: 64, PerSecond: 50, Burst: 200}},
		CORS: entrance.CORS{Methods: "GET, POST, DELETE, OPTIONS", Headers: []string{"Authorization", entrance.IdempotencyHeader}},
	}
	requests = entrance.New(check, e)
	e.Name, e.Concurrency, e.CORS = "crew socket", c.ClientLimit, entrance.CORS{}
	return requests, entrance.New(check, e)
}
