package websocket

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	ws "github.com/coder/websocket"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// Server shows an agent's sessions to WebSocket clients. Its methods are safe for concurrent use.
type Server struct {
	agent   string
	names   [feedCount]string
	rules   *rules
	hub     *hub
	accept  *ws.AcceptOptions
	reading chan struct{} // places for readBack
	started atomic.Bool
	ready   chan struct{}

	mu sync.Mutex
	// Nil before Run. Nobody makes the topic session-context any more: whoever waits for it waits apart.
	main, legacy follower
}

// New makes the server of an agent. Without WithAuthenticate anyone may see every session, and without WithOrigins from
// any page; both are logged once, here.
func New(agent string, opts ...Option) (*Server, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	r := defaults()
	for _, opt := range opts {
		opt(&r)
	}
	if len(r.errs) > 0 {
		return nil, errors.Join(r.errs...)
	}
	names := feedsOf(catalog)
	s := &Server{
		agent: agent, names: names, rules: &r, hub: newHub(&r, names), reading: make(chan struct{}, readBacks),
		ready:  make(chan struct{}),
		accept: &ws.AcceptOptions{InsecureSkipVerify: r.origins == nil, OriginPatterns: r.origins},
	}
	if r.authenticate == nil {
		r.logger.Warn("WebSocket is open: whoever reaches it may see every session", zap.String("agent", agent))
	}
	if r.origins == nil {
		r.logger.Warn("WebSocket takes browsers from any page", zap.String("agent", agent))
	}
	return s, nil
}

// ServeHTTP implements http.Handler, for any path. It returns when the client has gone.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var caller Caller
	if s.rules.authenticate != nil {
		var err error
		if caller, err = s.rules.authenticate(r); err != nil {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
	}
	c := newClient(s.rules, caller)
	if !s.hub.admit(c) {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "no more clients now", http.StatusServiceUnavailable)
		return
	}
	defer s.hub.leave(c)
	conn, err := ws.Accept(w, r, s.accept)
	if err != nil {
		return // it has answered
	}
	c.conn = conn
	subscriber := &subscriber{server: s, client: c}
	defer subscriber.stop()
	c.serve(subscriber.receive)
}

// subscriber acts on what a client sends.
type subscriber struct {
	server *Server
	client *client
	cancel context.CancelFunc // of what resumes; nil where nothing does
	ended  sync.WaitGroup
}

func (s *subscriber) receive(frame []byte) {
	sub, ok := parseSubscription(frame)
	if !ok {
		return
	}
	if may := s.client.caller.MaySubscribe; may != nil && !may(sub.session) {
		if !s.client.queue.put(item{text: refused(sub.session)}) {
			s.client.finish(ws.StatusPolicyViolation, "too many requests that are refused")
		}
		return
	}
	s.stop()
	if sub.last == "" {
		s.server.hub.subscribe(s.client, sub.session)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.ended.Go(func() { s.server.resume(ctx, s.client, sub) })
}

// stop ends what resumes.
func (s *subscriber) stop() {
	if s.cancel != nil {
		s.cancel()
		s.cancel = nil
	}
	s.ended.Wait()
}

// Run reads the topics, from their ends on and committed records only, until ctx ends; then it closes all clients and
// returns nil. It is no member of a group: every server of an agent sees everything. Brokers that are away and topics
// that are missing are waited for. The options are those of processors.New about connections. It is called once.
func (s *Server) Run(ctx context.Context, brokers []string, opts ...processors.Option) error {
	if !s.started.CompareAndSwap(false, true) {
		return fmt.Errorf("%w: Run is called once", ErrConfig)
	}
	defer s.hub.close()
	var names []string
	for feed, name := range s.names {
		if feed != int(feedSessionContext) {
			names = append(names, name)
		}
	}
	logged := append([]processors.Option{processors.WithLogger(s.rules.logger)}, opts...)
	main, err := processors.NewFollower(brokers, names, s.hub.take, logged...)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	quiet := append(append([]processors.Option{}, opts...), processors.WithLogger(zap.NewNop()))
	legacy, err := processors.NewFollower(brokers, []string{s.names[feedSessionContext]}, s.hub.take, quiet...)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	s.mu.Lock()
	s.main, s.legacy = main, legacy
	s.mu.Unlock()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return main.Run(ctx) })
	group.Go(func() error { return legacy.Run(ctx) })
	group.Go(func() error {
		select {
		case <-main.Ready():
			close(s.ready)
		case <-ctx.Done():
		}
		return nil
	})
	return group.Wait()
}

// Ready is closed when Run reads all topics: records that are written from then on are shown.
func (s *Server) Ready() <-chan struct{} { return s.ready }

func isReady(f interface{ Ready() <-chan struct{} }) bool {
	select {
	case <-f.Ready():
		return true
	default:
		return false
	}
}

func (s *Server) follower(f feed) follower {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f == feedSessionContext {
		return s.legacy
	}
	return s.main
}
