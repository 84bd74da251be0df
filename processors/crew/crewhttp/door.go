package crewhttp

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	ws "github.com/coder/websocket"
	"go.uber.org/zap"

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
	options   options
	requests  *entrance.Entrance
	sockets   *entrance.Entrance
	accept    *ws.AcceptOptions
	messages  *windows // of each caller
	spawns    *windows
	publishes publishTimes
}

// New returns the HTTP handler of the crews of an index. What callers ask for is written to the publisher. Without
// WithAuthenticate everyone may do everything but pages of other origins, and New logs a warning. The options of NewIndex except WithRoles, WithClock and
// WithLogger have no effect. Its error wraps ErrConfig and joins all problems.
func New(index *Index, to processors.Publisher, opts ...Option) (*Handler, error) {
	o := newOptions(opts)
	if index == nil {
		o.invalid("no index")
		index = &Index{}
	}
	if to == nil {
		o.invalid("no publisher")
	}
	agent := index.catalog.Agent
	cors := entrance.CORS{Methods: "GET, POST, DELETE, OPTIONS", Headers: []string{"Authorization", idempotencyHeader}}
	h := &Handler{
		topics: index.catalog, index: index, to: to,
		requests: o.entrance(agent, "crew", o.concurrency, cors), sockets: o.entrance(agent, "crew socket", o.clients, entrance.CORS{}),
		messages: newWindows(maxMessages, messagesWindow), spawns: newWindows(maxSpawns, spawnsWindow),
		publishes: publishTimes{request: publishTimeout, frame: framePublishTimeout},
	}
	if len(o.errs) > 0 {
		return nil, errors.Join(o.errs...)
	}
	h.options = o
	h.accept = &ws.AcceptOptions{
		OriginPatterns: o.origins,
		// A browser closes a connection for which the server has selected none of the subprotocols that it offered.
		Subprotocols: []string{auth.Subprotocol},
	}
	if o.authenticate == nil {
		o.logger.Warn("crew door is open: requests are not authenticated and may control every crew", zap.String("agent", agent))
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
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), h.options.prefix+"/")
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
	if !h.index.isReady() {
		return notReady()
	}
	return rt.serve(h, r)
}
