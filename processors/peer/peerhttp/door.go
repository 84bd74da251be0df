package peerhttp

import (
	"cmp"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/peer/internal/admission"
	"github.com/turntable-streams/turntable/topics"
)

// The URL paths that Handler serves. The ID of a task follows TasksPath.
const (
	CardPath     = "/.well-known/hybridclaw-peer.json"
	DelegatePath = "/api/peer/delegate"
	TasksPath    = "/api/peer/tasks/"
	ProxyPath    = "/api/peer/proxy"
)

// The names of the entrances in audit events.
const (
	peersEntrance = "peer"
	proxyEntrance = "peer-proxy"
)

// Handler is the HTTP handler of an instance's peers, and of its own callers that send tasks to peers. It is safe for
// concurrent use and need not be closed. The caller owns the replies and the publisher. Connections are limited by the
// http.Server: use package processors/httpserver, and set no WriteTimeout below the longest task.
type Handler struct {
	topics   topics.Catalog
	events   topics.Topic[topics.PeerAudit]
	replies  *Replies
	to       processors.Publisher
	settings func() *peer.Settings
	config   Config
	agents   admission.Agents
	slots    *slots
	refusals *refusals
	peers    *entrance.Entrance
	callers  *entrance.Entrance
}

// New returns the HTTP handler of an instance. Commands are written to the publisher, for the group of the agent of replies.
// current returns the settings in force, for example peer.SettingsFile.Settings; it is called once for each request. The error
// wraps ErrConfig and joins all problems.
func New(replies *Replies, to processors.Publisher, current func() *peer.Settings, c Config) (*Handler, error) {
	var check bounds.Check
	if replies == nil {
		check.Wrong("replies", "is nil")
		replies = &Replies{agent: "none"}
	}
	if to == nil {
		check.Wrong("publisher", "is nil")
	}
	if current == nil {
		check.Wrong("settings", "is nil")
	}
	c.Logger = cmp.Or(c.Logger, replies.logger)
	c.complete(&check)
	h := &Handler{
		replies: replies, to: to, settings: current, config: c, agents: c.agents(replies.agent), slots: newSlots(c.Clock),
		refusals: newRefusals(c.RefusalRate),
	}
	h.peers, h.callers = c.entrances(&check, replies.agent)
	if err := h.catalogs(); err != nil {
		check.Wrong("AuditAgent", "or the agent of replies cannot be used: %w", err)
	}
	if err := check.Err(ErrConfig); err != nil {
		return nil, err
	}
	switch {
	case c.OpenProxy:
		c.Logger.Warn("peer proxy is open: requests are not authenticated and may send tasks to every peer", zap.String("agent", replies.agent))
	case c.Authenticate == nil:
		c.Logger.Info("peer proxy is closed: no authentication is configured", zap.String("agent", replies.agent))
	}
	replies.watch(h.seen)
	return h, nil
}

func (h *Handler) catalogs() (err error) {
	if h.topics, err = topics.For(h.replies.agent); err != nil {
		return err
	}
	other, err := topics.For(cmp.Or(h.config.AuditAgent, h.replies.agent))
	h.events = other.PeerEvents
	return err
}

// seen frees the slot of a task that has ended.
func (h *Handler) seen(reply topics.PeerReply) {
	if reply.State == topics.PeerDone && reply.InboundID != "" {
		h.slots.ended(running{reply.InboundID, reply.TaskID, reply.Hash})
	}
}

// request is one request and its visit.
type request struct {
	*http.Request
	*entrance.Visit
	w        http.ResponseWriter
	settings *peer.Settings // in force when it came
}

// route is what a path stands for.
type route struct {
	serve map[string]func(h *Handler, r *request, id string) answer // by method
	allow string
	proxy bool
	id    string
}

// routeOf returns what a path stands for; ok is false for an unknown one.
func routeOf(escaped string) (rt route, ok bool) {
	type handlers = map[string]func(h *Handler, r *request, id string) answer
	switch escaped {
	case CardPath:
		return route{serve: handlers{http.MethodGet: (*Handler).card}, allow: "GET, OPTIONS"}, true
	case DelegatePath:
		return route{serve: handlers{http.MethodPost: (*Handler).delegate}, allow: "POST, OPTIONS"}, true
	case ProxyPath:
		return route{serve: handlers{http.MethodPost: (*Handler).forward}, allow: "POST, OPTIONS", proxy: true}, true
	}
	rest, ok := strings.CutPrefix(escaped, TasksPath)
	id, err := url.PathUnescape(rest)
	if !ok || err != nil || id == "" || strings.Contains(rest, "/") || !utf8.ValidString(id) || peerwire.Length(id) > peerwire.MaxID {
		return route{}, false
	}
	serve := handlers{http.MethodGet: (*Handler).ask, http.MethodDelete: (*Handler).cancel}
	return route{serve: serve, allow: "GET, DELETE, OPTIONS", id: id}, true
}

// locationOf returns where a task can be polled, relative to DelegatePath, so that it is right behind any prefix. ok is false if
// it would be too long.
func locationOf(taskID string) (location string, ok bool) {
	escaped := url.PathEscape(taskID)
	if taskID == "." || taskID == ".." {
		escaped = strings.Repeat("%2E", len(taskID)) // a client must not resolve them
	}
	return "tasks/" + escaped, len(escaped) <= maxLocation
}

// maxLocation is the longest ID of a task in a path, in bytes. The entrance refuses longer paths.
const maxLocation = 4 << 10

// ServeHTTP implements http.Handler. It answers other paths with 404.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rt, ok := routeOf(r.URL.EscapedPath())
	if !ok {
		notFound().write(w)
		return
	}
	e := h.peers
	if rt.proxy {
		e = h.callers
	}
	v, refusal := e.Open(w, r)
	defer v.Close()
	req := &request{r, v, w, nil}
	defer h.recovered(w)
	switch serve := rt.serve[r.Method]; {
	case refusal != nil:
		h.notOpened(req, rt, refusal).write(w)
	case r.Method == http.MethodOptions:
		answer{status: http.StatusNoContent, allow: rt.allow}.write(w)
	case serve == nil:
		methodNotAllowed(rt.allow).write(w)
	default:
		req.settings = h.settings()
		serve(h, req, rt.id).write(w)
	}
}

// notOpened answers a request that did not get through the entrance.
func (h *Handler) notOpened(r *request, rt route, refusal *entrance.Refusal) answer {
	if rt.proxy || rt.serve[http.MethodPost] == nil {
		return closed(r, refusal)
	}
	r.settings = h.settings()
	return h.turnAway(r, "", refusal)
}

// closed answers a request that its entrance refused, without a record: it is none of a task.
func closed(r *request, refusal *entrance.Refusal) answer {
	refusal.SetHeader(r.w.Header())
	a := refused(refusalOf(refusal))
	a.retryAfter = max(a.retryAfter, refusal.RetryAfter)
	return a
}

// recovered answers a request whose handling panicked. The value of the panic may have texts of the request, so it is not
// logged.
func (h *Handler) recovered(w http.ResponseWriter) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler {
		panic(p)
	}
	h.config.Logger.Error("peer door: a request failed", zap.String("agent", h.topics.Agent), zap.ByteString("stack", debug.Stack()))
	refused(peerwire.Internal()).write(w)
}

// publish writes the commands of a request. The refusal is nil if they are written.
func (h *Handler) publish(r *request, session, id string, commands ...topics.PeerCommand) *peerwire.Refusal {
	var records []processors.Outbound
	for _, c := range commands {
		out, err := processors.OutboundOf(h.topics.PeerCommands, session, c, id+"/"+string(c.Kind))
		if err != nil {
			return refusalOf(r.Unwritten(err))
		}
		records = append(records, out)
	}
	if refusal := r.Publish(h.to, records...); refusal != nil {
		return refusalOf(refusal)
	}
	return nil
}
