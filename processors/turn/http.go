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

// The URL paths of the doors.
const (
	ChatPath         = "/api/chat"
	ToolResponsePath = "/api/tools/response"
)

// ErrDoors is wrapped by the errors of NewDoors. They concern the configuration.
var ErrDoors = errors.New("turn: bad configuration of doors")

// publishTimeout is how long a request waits for the acknowledgement of the brokers.
const publishTimeout = 30 * time.Second

// Publisher writes records. It returns nil when the brokers have acknowledged all of them. *processors.Publisher
// implements it.
type Publisher interface {
	Publish(ctx context.Context, records ...processors.Outbound) error
}

// Doors are the HTTP handlers of an agent: ChatPath receives messages, ToolResponsePath receives the results of
// asynchronous tools. They implement FlightDeck's chat API. They answer with success only after the brokers have
// acknowledged the records.
//
// Doors serves both paths; Chat and ToolResponse return the handler of one, to be mounted at any path. All are safe for
// concurrent use and need not be closed. The caller owns the publisher. Doors limit the size of a request body, but not
// the time to read it: set the timeouts of the http.Server.
type Doors struct {
	topics topics.Catalog
	to     Publisher
	tokens token.Verifier
	rules  doorRules
	once   *dedup.Memory[fingerprint, answered]
}

// NewDoors returns the doors of an agent. Without WithAuthenticate every request may chat; without WithCallbackSecrets
// every tool callback is rejected. NewDoors logs a warning for each of the two.
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
		rules.invalid("no publisher")
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
		rules.logger.Warn("chat door is open: requests are not authenticated and may write to every session",
			zap.String("agent", agent))
	}
	if !d.tokens.Configured() {
		rules.logger.Warn("tool callbacks are rejected: no callback secret is configured", zap.String("agent", agent))
	}
	return d, nil
}

// ServeHTTP implements http.Handler. Like FlightDeck, it also serves paths that begin with ChatPath or ToolResponsePath;
// it answers all others with 404.
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

// publish writes the records of a request. A disconnect of the client does not cancel it: some of the records may be
// written already.
func (d *Doors) publish(r *http.Request, records ...processors.Outbound) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), publishTimeout)
	defer cancel()
	return d.to.Publish(ctx, records...)
}

// unpublished returns the answer to a request whose records may not have been written.
func (d *Doors) unpublished(door string, err error) answer {
	if errors.Is(err, processors.ErrTooLarge) {
		return refusal(http.StatusRequestEntityTooLarge, "Request is too large for a record")
	}
	d.rules.logger.Error("request failed: records may not have been written", zap.String("door", door),
		zap.String("agent", d.topics.Agent), zap.Error(err))
	return internalError()
}
