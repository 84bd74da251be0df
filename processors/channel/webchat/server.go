package webchat

import (
	"context"
	"net/http"

	ws "github.com/coder/websocket"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/inorder"
	"github.com/turntable-streams/turntable/processors/channel/text"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/processors/internal/socket"
	"github.com/turntable-streams/turntable/topics"
)

// Server connects the users of a site. It implements http.Handler and adapter.Adapter and is safe for concurrent use.
type Server struct {
	config   Config
	receiver adapter.Receiver
	door     *entrance.Entrance
	hub      hub
	turns    inorder.Turns[string] // of users, whose events keep their order
	ctx      context.Context       // ends with Close
	stop     context.CancelFunc
}

// New returns a server. The error wraps ErrConfig.
func New(c Config, r adapter.Receiver) (*Server, error) {
	var check bounds.Check
	c.complete(&check)
	if r == nil {
		check.Wrong("Receiver", "is nil")
	}
	door := c.entrance(&check)
	if err := check.Err(ErrConfig); err != nil {
		return nil, err
	}
	s := &Server{config: c, receiver: r, door: door, hub: hub{users: map[string]map[*client]struct{}{}}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// Close disconnects all clients, refuses new ones, and returns when the clients' goroutines have ended. What is being received is
// cancelled: its clients have no "accepted" and send it again.
func (s *Server) Close() {
	s.stop()
	s.hub.close(func(c *client) { c.End(ws.StatusGoingAway, socket.ReasonStopping) })
}

// ServeHTTP implements http.Handler for any path. It blocks until the client has disconnected. It answers 401 if the caller is not
// authenticated, 403 if it lacks a right or a UserID or the page is of another origin, 429 and 503 over the limits.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v, refusal := s.door.Open(w, r)
	defer v.Close()
	if refusal == nil {
		refusal = v.Authenticate(auth.Read | auth.Write)
	}
	if refusal == nil && (v.Caller.UserID == "" || !usable(s.config.Account, v.Caller.UserID)) {
		refusal = v.Refuse(&entrance.Refusal{Status: http.StatusForbidden, Text: "Forbidden: the credential names no user"})
	}
	if refusal != nil {
		refuse(w, refusal)
		return
	}
	c := newClient(&s.config, v.Caller)
	conn := socket.Accept(w, r, v, s.config.Origins)
	if conn == nil {
		return
	}
	c.reply(response{Type: "connected", User: c.user})
	if !s.hub.join(c) {
		_ = conn.Close(ws.StatusGoingAway, socket.ReasonStopping)
		return
	}
	defer s.hub.leave(c)
	c.Serve(conn, func(frame []byte) { s.receive(c, frame) }, c.idle)
}

func usable(account, user string) bool {
	return topics.Origin{Channel: Channel, Account: account, Recipient: user, User: user}.Check() == nil
}

func refuse(w http.ResponseWriter, r *entrance.Refusal) {
	r.SetHeader(w.Header())
	http.Error(w, r.Text, r.Status)
}

// receive handles a frame of a client.
func (s *Server) receive(c *client, frame []byte) {
	if !c.hear() {
		return
	}
	r, bad := parse(frame)
	switch {
	case bad != nil:
		c.reply(*bad)
		return
	case r.Type == "ping":
		c.reply(response{Type: "pong"})
		return
	case !c.events.AllowN(s.config.Clock.Now(), 1):
		c.reply(problem(r.ID, codeRate, "too many messages: send it again in a minute"))
		return
	case r.Type == "decision" && !c.Caller.Can(auth.Answer):
		c.reply(problem(r.ID, codeForbidden, "you may not decide"))
		return
	}
	ctx, cancel := context.WithTimeout(c.Context, s.config.ReceiveTimeout)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	in := r.inbound(s.config.Account, c.user)
	if !c.Caller.Can(auth.Answer) { // the text may be a command that decides
		in.Origin.Proof = topics.ProofNone
	}
	if err := s.turns.Do(ctx, c.user, func() error { return s.receiver.Receive(ctx, in) }); err != nil {
		s.config.Logger.Warn("a message was not received; the client is told to send it again",
			zap.String("account", s.config.Account), zap.Error(err))
		c.reply(problem(r.ID, codeRetry, "the message was not received: send it again"))
		return
	}
	c.reply(response{Type: "accepted", ID: r.ID})
}

// Channel implements adapter.Adapter.
func (*Server) Channel() string { return Channel }

// Traits implements adapter.Adapter.
func (*Server) Traits() adapter.Traits {
	return adapter.Traits{Format: text.Markdown, Limit: text.Limit{Max: maxText, Unit: text.Bytes}, Threads: true, Buttons: true}
}

// Send implements adapter.Adapter. It returns when the chunk was written to one of the user's sockets. The others have it in their
// queues. The ID that it returns is the key that clients receive.
func (s *Server) Send(ctx context.Context, c adapter.Chunk) (adapter.Sent, error) {
	if c.To.Channel != Channel || c.To.Account != s.config.Account {
		return adapter.Sent{}, &adapter.Failure{Reason: "channel is not configured", Final: true}
	}
	sockets := s.hub.of(c.To.Recipient)
	frame, written, waiting := answer(c).encode(), make(chan bool, len(sockets)), 0
	for _, c := range sockets {
		if c.offer(socket.Frame{Text: frame, Done: func(ok bool) { written <- ok }}) {
			waiting++
		}
	}
	for ; waiting > 0; waiting-- {
		select {
		case ok := <-written:
			if ok {
				return adapter.Sent{ID: c.Key}, nil
			}
		case <-ctx.Done():
			return adapter.Sent{}, &adapter.Failure{Reason: topics.ReasonTimeout}
		}
	}
	return adapter.Sent{}, &adapter.Failure{Reason: topics.ReasonNotConnected}
}
