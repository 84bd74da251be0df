package turn

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/dedup"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/token"
	"github.com/turntable-streams/turntable/topics"
)

// The paths of the doors.
const (
	ChatPath         = "/api/chat"
	ToolResponsePath = "/api/tools/response"
)

// ErrDoors is wrapped by everything that NewDoors refuses.
var ErrDoors = errors.New("turn: bad doors")

// publishTimeout is how long a request waits for the brokers.
const publishTimeout = 30 * time.Second

// Publisher writes records and returns nil when the brokers have acknowledged all of them. *processors.Publisher is
// one.
type Publisher interface {
	Publish(ctx context.Context, records ...processors.Outbound) error
}

// Doors are an agent's HTTP handlers: messages come in at ChatPath, results of asynchronous tools at ToolResponsePath.
// They are FlightDeck's chat API, and answer with success only when the brokers have acknowledged what was written.
//
// Doors is a handler for both paths; Chat and ToolResponse are the handlers by themselves, to be mounted anywhere. They
// are safe for concurrent use, hold nothing open, and need no closing; the publisher is the caller's. Set the timeouts
// of the http.Server that they run in: a door bounds what it reads, not how long that takes to come.
type Doors struct {
	topics topics.Catalog
	to     Publisher
	tokens token.Verifier
	rules  doorRules
	once   *dedup.Memory[fingerprint, answered]
}

// NewDoors makes the doors of an agent. Without WithAuthenticate anyone may chat, without WithCallbackSecrets nobody
// may answer for a tool; both are logged once, here.
func NewDoors(agent string, to Publisher, opts ...DoorOption) (*Doors, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDoors, err)
	}
	rules := doorRules{
		bodyLimit: defaultBodyLimit, window: defaultWindow, remembered: defaultRemembered,
		services: func(string) bool { return false },
		origin:   "*", allowed: "Content-Type",
		clock: clock.System(), logger: zap.NewNop(),
	}
	for _, opt := range opts {
		opt(&rules)
	}
	if to == nil {
		rules.refuse("no publisher")
	}
	if len(rules.errs) > 0 {
		return nil, errors.Join(rules.errs...)
	}
	d := &Doors{
		topics: catalog, to: to, tokens: token.NewVerifier(rules.secrets...), rules: rules,
		once: dedup.New[fingerprint, answered](rules.window, rules.remembered, rules.clock),
	}
	if rules.bound {
		d.tokens = d.tokens.For(agent)
	}
	if rules.authenticate == nil {
		rules.logger.Warn("chat door is open: whoever reaches it may write to every session", zap.String("agent", agent))
	}
	if !d.tokens.Configured() {
		rules.logger.Warn("tool callbacks are refused: no secret", zap.String("agent", agent))
	}
	return d, nil
}

// ServeHTTP implements http.Handler for both paths, and as in FlightDeck for all that begin with one of them; others
// are not found.
func (d *Doors) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, ChatPath):
		d.serveChat(w, r)
	case strings.HasPrefix(r.URL.Path, ToolResponsePath):
		d.serveToolResponse(w, r)
	default:
		http.NotFound(w, r)
	}
}

// publish writes records for a request. A client that goes away does not stop it: what it asked for is half done.
func (d *Doors) publish(r *http.Request, records ...processors.Outbound) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), publishTimeout)
	defer cancel()
	return d.to.Publish(ctx, records...)
}

// unpublished is the answer where records may not have been written.
func (d *Doors) unpublished(door string, err error) answer {
	if errors.Is(err, processors.ErrTooLarge) {
		return refusal(http.StatusRequestEntityTooLarge, "Request is too large for a record")
	}
	d.rules.logger.Error("request was not accepted", zap.String("door", door), zap.String("agent", d.topics.Agent),
		zap.Error(err))
	return internalError()
}
