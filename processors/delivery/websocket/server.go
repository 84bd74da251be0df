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
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/topics"
)

// Server shows the sessions of an agent to WebSocket clients. Its methods are safe for concurrent use.
type Server struct {
	agent   string
	names   [feedCount]string
	rules   *rules
	hub     *hub
	accept  *ws.AcceptOptions
	reading chan struct{} // one element per read from the topics that is running
	started atomic.Bool
	ready   chan struct{}

	mu sync.Mutex
	// The followers are nil before Run. The topic session-context has its own, because it may not exist: only FlightDeck
	// creates it, and a follower waits for all its topics.
	main, legacy follower
}

// New returns a server for an agent. It opens no connection. Without WithAuthenticate any client may subscribe to every
// session, and without WithOrigins browsers may connect from any page. New logs a warning for each.
// The error wraps ErrConfig.
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
		agent: agent, names: names, rules: &r, hub: newHub(&r, names), reading: make(chan struct{}, maxTopicReads),
		ready: make(chan struct{}),
		accept: &ws.AcceptOptions{
			InsecureSkipVerify: r.origins == nil, OriginPatterns: r.origins,
			// A browser closes a connection for which the server has selected none of the subprotocols that it offered.
			Subprotocols: []string{auth.Subprotocol},
		},
	}
	if r.authenticate == nil {
		r.logger.Warn("WebSocket clients are not authenticated: any client may subscribe to every session (use WithAuthenticate)", zap.String("agent", agent))
	}
	if r.origins == nil {
		r.logger.Warn("browsers may connect from any page (use WithOrigins)", zap.String("agent", agent))
	}
	return s, nil
}

// ServeHTTP implements http.Handler for any path. It blocks until the client has disconnected. It answers 401 if the client
// is not authenticated, 403 if it does not have the right auth.Read, and 503 if there are too many clients.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var caller auth.Caller
	if s.rules.authenticate != nil {
		var err error
		if caller, err = s.rules.authenticate(r); err != nil {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		switch {
		case caller.Ended(s.rules.clock.Now()):
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		case !caller.Can(auth.Read):
			http.Error(w, "Forbidden", http.StatusForbidden)
			return
		}
	}
	c := newClient(s.rules, caller)
	if !s.hub.admit(c) {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many clients", http.StatusServiceUnavailable)
		return
	}
	defer s.hub.leave(c)
	conn, err := ws.Accept(w, r, s.accept)
	if err != nil {
		return // Accept has written the response
	}
	c.conn = conn
	subscriber := &subscriber{server: s, client: c}
	defer subscriber.stopResume()
	c.serve(subscriber.receive)
}

// subscriber handles the frames that a client sends.
type subscriber struct {
	server *Server
	client *client
	cancel context.CancelFunc // cancels the resume that is running; nil if there is none
	ended  sync.WaitGroup     // for that resume
}

func (s *subscriber) receive(frame []byte) {
	sub, ok := parseSubscription(frame)
	if !ok {
		return
	}
	if !s.client.caller.Allowed(sub.session) {
		if !s.client.queue.put(item{text: refused(sub.session)}) {
			s.client.end(ws.StatusPolicyViolation, "too many requests that are refused")
		}
		return
	}
	s.stopResume()
	if sub.last == "" {
		s.server.hub.subscribe(s.client, sub.session)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.ended.Go(func() { s.server.resume(ctx, s.client, sub) })
}

// stopResume cancels the resume that is running and waits for its end.
func (s *subscriber) stopResume() {
	if s.cancel != nil {
		s.cancel()
		s.cancel = nil
	}
	s.ended.Wait()
}

// Run reads the topics until ctx ends. Then it disconnects all clients and returns nil. It starts at the ends of the
// topics, reads committed records only, and belongs to no consumer group, so that every server of an agent sees all
// records. It waits for brokers that are unavailable and for topics that do not exist. opts are the connection options of
// processors.New. Run may be called once. A second call, and invalid options, return errors that wrap ErrConfig.
func (s *Server) Run(ctx context.Context, brokers []string, opts ...processors.Option) error {
	if !s.started.CompareAndSwap(false, true) {
		return fmt.Errorf("%w: Run may be called only once", ErrConfig)
	}
	defer s.hub.close()
	var names []string
	for feed, name := range s.names {
		if feed != int(feedSessionContext) {
			names = append(names, name)
		}
	}
	logged := append([]processors.Option{processors.WithLogger(s.rules.logger)}, opts...)
	main, err := processors.NewFollower(brokers, names, s.hub.onRecord, logged...)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	quiet := append(append([]processors.Option{}, opts...), processors.WithLogger(zap.NewNop()))
	legacy, err := processors.NewFollower(brokers, []string{s.names[feedSessionContext]}, s.hub.onRecord, quiet...)
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

// Ready returns a channel that is closed when Run reads all topics. Clients see the records that are written after that.
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
