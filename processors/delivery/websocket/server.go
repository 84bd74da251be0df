package websocket

import (
	"context"
	"net/http"
	"slices"
	"sync"

	ws "github.com/coder/websocket"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/processors/internal/socket"
	"github.com/turntable-streams/turntable/processors/internal/tableindex"
	"github.com/turntable-streams/turntable/topics"
)

// Server shows the sessions of an agent to WebSocket clients. Its methods are safe for concurrent use.
type Server struct {
	agent   string
	names   [feedCount]string
	config  *Config
	hub     *hub
	door    *entrance.Entrance
	signer  signer
	reading *entrance.Slots // of reads from the topics
	follows *tableindex.Index
	// The topic session-context has its own source, because it may not exist: only FlightDeck creates it, and a follower waits for
	// all its topics.
	main, legacy *tableindex.Source
	follower     func(feed) follower // that of its source; nil before Run
}

// New returns a server for an agent. It opens no connection. Without Config.Authenticate any client may subscribe to every
// session, and New logs a warning. The error wraps ErrConfig.
func New(agent string, c Config) (*Server, error) {
	var check bounds.Check
	catalog, err := topics.For(agent)
	if err != nil {
		check.Wrong("agent", "cannot be used: %w", err)
	}
	c.complete(&check)
	door := c.entrance(&check, agent)
	if err := check.Err(ErrConfig); err != nil {
		return nil, err
	}
	names, signer := feedsOf(catalog), newSigner(agent, c.ResumeKeys)
	s := &Server{
		agent: agent, names: names, config: &c, hub: newHub(&c, signer, names), signer: signer,
		reading: entrance.NewSlots(maxTopicReads), door: door,
	}
	s.legacy = &tableindex.Source{Topics: []string{names[feedSessionContext]}, Handle: s.hub.onRecord, New: true, Optional: true}
	s.main = &tableindex.Source{Topics: slices.Delete(slices.Clone(names[:]), int(feedSessionContext), int(feedSessionContext)+1), Handle: s.hub.onRecord, New: true}
	s.follows, s.follower = tableindex.New(ErrConfig, nil, s.main, s.legacy), s.running
	s.follows.Stop = s.hub.close
	entrance.WarnOpen(c.Door, agent, "WebSocket clients are not authenticated: any client may subscribe to every session (set Authenticate)")
	if c.EverySessionToEveryone {
		c.Logger.Warn("every WebSocket client sees every session (EverySessionToEveryone)", zap.String("agent", agent))
	}
	return s, nil
}

// ServeHTTP implements http.Handler for any path. It blocks until the client has disconnected. It answers 401 if the client
// is not authenticated, 403 if it does not have the right auth.Read, and 503 if there are too many clients.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v, refusal := s.door.Open(w, r)
	defer v.Close()
	if refusal == nil {
		refusal = v.Authenticate(auth.Read)
	}
	if refusal != nil {
		refuse(w, refusal)
		return
	}
	c := newClient(s.config, v.Caller)
	c.owner = v.Key()
	if !s.hub.admit(c) {
		refuse(w, &entrance.Refusal{Status: http.StatusServiceUnavailable, Text: "too many clients"})
		return
	}
	defer s.hub.leave(c)
	conn := socket.Accept(w, r, v, s.config.Origins)
	if conn == nil {
		return
	}
	subscriber := &subscriber{server: s, client: c, visit: v}
	defer subscriber.stop()
	c.Serve(conn, subscriber.receive)
}

// subscriber handles the frames that a client sends.
type subscriber struct {
	server *Server
	client *client
	visit  *entrance.Visit
	cancel context.CancelFunc // cancels the resume that is running; nil if there is none
	ended  sync.WaitGroup     // for that resume
}

func (s *subscriber) receive(frame []byte) {
	sub, ok := parseSubscription(frame)
	if !ok {
		return
	}
	if sub.session == everySession {
		s.watch(sub)
		return
	}
	if refusal := s.visit.Session(sub.session); refusal != nil {
		s.refuse(sub.session, refusal)
		return
	}
	s.stop()
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	if gates := s.server.config.Gates; gates != nil {
		feed := &gateFeed{client: s.client, session: sub.session, more: make(chan struct{}, 1)}
		s.ended.Go(func() { feed.run(ctx, gates, s.server.config.Logger) })
	}
	if sub.last == "" {
		s.server.hub.subscribe(s.client, sub.session)
		return
	}
	s.ended.Go(func() { s.server.resume(ctx, s.client, sub) })
}

// refuse sends a "refused" frame.
func (s *subscriber) refuse(session string, refusal *entrance.Refusal) {
	if !s.client.Put(socket.Frame{Text: refused(session, refusal)}) {
		s.client.End(ws.StatusPolicyViolation, "too many requests that are refused")
	}
}

// stop cancels what the last subscription has started and waits for its end.
func (s *subscriber) stop() {
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
	return s.follows.Run(ctx, brokers, s.config.Logger, opts, s.hub.flushDue)
}

// Ready returns a channel that is closed when Run reads all topics. Clients see the records that are written after that.
func (s *Server) Ready() <-chan struct{} { return s.follows.Ready }

func (s *Server) running(f feed) follower {
	source := s.main
	if f == feedSessionContext {
		source = s.legacy
	}
	if from := source.Follower(); from != nil {
		return from
	}
	return nil
}
