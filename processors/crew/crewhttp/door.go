package crewhttp

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

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
	topics    topics.Catalog
	index     *Index
	to        processors.Publisher
	config    Config
	requests  *entrance.Entrance
	sockets   *entrance.Entrance
	messages  *windows // of each caller
	spawns    *windows
	publishes publishTimes
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
		publishes: publishTimes{request: publishTimeout, frame: framePublishTimeout},
	}
	h.requests, h.sockets = c.entrances(&check, agent)
	if err := check.Err(ErrConfig); err != nil {
		return nil, err
	}
	if c.Authenticate == nil {
		c.Logger.Warn("crew door is open: requests are not authenticated and may control every crew", zap.String("agent", agent))
	}
	return h, nil
}

// request is one request and its visit.
type request struct {
	*http.Request
	*entrance.Visit
	w     http.ResponseWriter
	parts []string // of the path: what the * of a route stand for
	body  []byte
}

// route is what a method and a path stand for. A * of the path stands for one part that is not empty.
type route struct {
	method, path string
	rights       auth.Rights
	serve        func(h *Handler, r *request) answer
}

// match returns what the * of a route's path stand for.
func (rt route) match(parts []string) (stars []string, ok bool) {
	want := strings.Split(rt.path, "/")
	if len(want) != len(parts) {
		return nil, false
	}
	for i, w := range want {
		switch {
		case w == "*":
			stars = append(stars, parts[i])
		case w != parts[i]:
			return nil, false
		}
	}
	return stars, true
}

// find returns the route of a method and a path without the prefix. known is false if no method has the path.
func find(method, escaped string) (rt route, stars []string, ok, known bool) {
	parts := strings.Split(strings.TrimPrefix(escaped, "/"), "/")
	for i, p := range parts {
		text, err := url.PathUnescape(p)
		if err != nil || text == "" || len(text) > maxPath {
			return route{}, nil, false, false
		}
		parts[i] = text
	}
	for _, rt := range routes {
		stars, fits := rt.match(parts)
		if !fits {
			continue
		}
		known = true
		if rt.method == method {
			return rt, stars, true, true
		}
	}
	return route{}, nil, false, known
}

// ServeHTTP implements http.Handler. It blocks until a WebSocket client has disconnected. Other paths get 404.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == SocketPath {
		h.serveSocket(w, withCredential(r, true))
		return
	}
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), h.config.under("/"))
	if !ok {
		write(w, errorAnswer(http.StatusNotFound, "Not found"))
		return
	}
	rt, stars, fits, known := find(r.Method, rest)
	if !known {
		write(w, errorAnswer(http.StatusNotFound, "Not found"))
		return
	}
	r = withCredential(r, false)
	v, refusal := h.requests.Open(w, r)
	defer v.Close()
	switch {
	case refusal != nil:
		write(w, refused(w, refusal))
	case r.Method == http.MethodOptions:
		write(w, answer{status: http.StatusNoContent})
	case !fits:
		write(w, errorAnswer(http.StatusMethodNotAllowed, "Method not allowed"))
	default:
		write(w, h.serve(&request{Request: r, Visit: v, w: w, parts: stars}, rt))
	}
}

func (h *Handler) serve(r *request, rt route) answer {
	if refusal := r.Authenticate(rt.rights); refusal != nil {
		return refused(r.w, refusal)
	}
	if rt.method != http.MethodGet {
		body, refusal := r.ReadBody(r.w)
		if refusal != nil {
			return refused(r.w, refusal)
		}
		r.body = body
	}
	if !h.index.follows.IsReady() {
		return notReady()
	}
	return rt.serve(h, r)
}
