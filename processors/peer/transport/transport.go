package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"net/http"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/topics"
)

// Kind is the kind of route of the attempts that package peer asks for: a key of sink.Config.Transports.
const Kind = topics.KindPeer

// Transport sends tasks to peers. It reuses connections and is safe for concurrent use. Use it with sink.Config.Peers, and use one
// for all sinks of a process: it remembers which attempts were made.
type Transport struct {
	current func() *peer.Settings
	client  *http.Client
	clock   processors.Clock
	cards   cards
	memory  memory
	pause   time.Duration // the first wait between two polls
}

var _ sink.Shortener = (*Transport)(nil)

// Config configures New. Fields that are zero have their defaults.
type Config struct {
	// TLS is the TLS configuration for peers with https (default: the system's). It is cloned.
	TLS *tls.Config
	// Clock is compared with the deadlines of tasks (default: the system clock). Timeouts of requests are measured by the system clock.
	Clock processors.Clock
}

// New returns a transport that sends tasks to the peers of a configuration. The function is called for each attempt and
// each poll, by several goroutines, for example peer.SettingsFile.Settings: a peer that was removed gets no further request. Call Close when
// the transport is no longer used.
func New(current func() *peer.Settings, c Config) *Transport {
	t := &Transport{current: current, client: sink.NewClient(), clock: cmp.Or[processors.Clock](c.Clock, clock.System()), pause: firstPause}
	if c.TLS != nil {
		t.client.Transport.(*http.Transport).TLSClientConfig = c.TLS.Clone()
	}
	return t
}

// Close closes idle connections.
func (t *Transport) Close() { t.client.CloseIdleConnections() }

// Deliver is Exchange without the response.
func (t *Transport) Deliver(ctx context.Context, d topics.Delivery) error {
	_, err := t.Exchange(ctx, sink.Attempt{Delivery: d})
	return err
}

// Exchange makes one attempt, whose body is a peerwire.Attempt, or passes on a cancel. It blocks until the peer has answered, the
// attempt's timeout has passed, or ctx ends. The response is a peerwire.Answer. The error is nil if there is a well-formed reply,
// whatever its status, and else a *sink.Failure. A second call for the same attempt, while the first one runs or after it, makes no
// request: it returns the same answer.
func (t *Transport) Exchange(ctx context.Context, a sink.Attempt) (topics.Raw, error) {
	body, err := peerwire.ReadAttempt(a.Body)
	switch {
	case err != nil:
		return failed(peerwire.CodeInvalidInput, "attempt cannot be read", final).result()
	case body.Cancel:
		return t.cancel(ctx, a.Delivery, body).result()
	}
	for {
		e, mine := t.memory.begin(a.Delivery, t.clock.Now())
		switch {
		case e == nil:
			return failed(peerwire.CodeCancelled, reasonCancelled, final).alsoReached(a.Repeated || body.Repeat).result()
		case mine:
			e.repeated = e.repeated || a.Repeated
			return t.own(ctx, e, a.Delivery, body).result()
		}
		select {
		case <-e.done:
			if e.known {
				return e.outcome.alsoReached(a.Repeated).result()
			}
			// The first call was interrupted: this one makes the attempt.
		case <-ctx.Done():
			return interruption(ctx, network{sent: true}).result()
		}
	}
}

// own makes an attempt that no other call makes.
func (t *Transport) own(ctx context.Context, e *entry, d topics.Delivery, body peerwire.Attempt) outcome {
	inner, end := context.WithCancelCause(ctx)
	defer end(nil)
	if !t.memory.start(e, end) {
		end(errCancelled)
	}
	o, known := failed(peerwire.CodeUnreachable, "transport panicked", reached), false
	defer func() { t.memory.finish(e, o, known) }() // also after a panic
	body.Repeat = body.Repeat || e.repeated
	o = t.attempt(inner, d.Route.Service, body).alsoReached(body.Repeat)
	if peer, ok := t.peer(d.Route.Service); ok && o.answer.Code == peerwire.CodeCancelled && o.answer.Reached {
		_ = t.tell(ctx, peer, body.TaskID) // the attempt has ended either way
	}
	// The answer of an interrupted attempt is about this process. A call for the same attempt makes it again, as a repeated one.
	known = ctx.Err() == nil
	return o
}

// attempt sends the request of an attempt.
func (t *Transport) attempt(ctx context.Context, peerID string, a peerwire.Attempt) outcome {
	peer, ok := t.peer(peerID)
	if !ok {
		return failed(peerwire.CodeUnknownPeer, "unknown peer", final)
	}
	req, refusal := peerwire.ReadRequest(a.Request)
	switch {
	case refusal != nil, req.TaskID != a.TaskID:
		return failed(peerwire.CodeInvalidInput, "request cannot be read", final)
	case !peer.MayUse(req.AgentID):
		return failed(peerwire.CodeAgentForbidden, "agent is not allowed", final)
	}
	rest := a.Deadline.Sub(t.clock.Now())
	timeout := min(a.Timeout, rest)
	if timeout <= 0 {
		return failed(peerwire.CodeTimeout, sink.ReasonTimeout)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	begun := time.Now()
	card, broken := t.card(ctx, peer, timeout/2)
	switch {
	case !a.Repeat: // a peer without a card gets the request too
	case broken != nil:
		broken.answer.Answered, broken.answer.Reached = false, false // the request was not sent
		return *broken
	case !card.Idempotent:
		return failed(peerwire.CodeOutcomeUnknown, "outcome of an earlier attempt is unknown", final)
	}
	req.Timeout = timeout
	if card.Idempotent {
		req.Timeout = rest
	}
	req.Timeout = max(req.Timeout-time.Since(begun), time.Millisecond)
	return withoutToken(t.post(ctx, peer, req), peer)
}

// withoutToken returns an outcome whose text does not have the peer's token, which a peer may echo.
func withoutToken(o outcome, peer peer.Outbound) outcome {
	if token := peer.Token.Reveal(); token != "" {
		o.answer.Detail = strings.ReplaceAll(o.answer.Detail, token, peer.Token.String())
	}
	return o
}

// peer returns the peer with an ID, if it is configured now.
func (t *Transport) peer(id string) (peer.Outbound, bool) {
	if t.current == nil {
		return peer.Outbound{}, false
	}
	s := t.current()
	if s == nil {
		return peer.Outbound{}, false
	}
	return s.Peer(id)
}

// Shorten returns an answer without the reply, which does not fit into a record. It implements sink.Shortener.
func (t *Transport) Shorten(response topics.Raw) topics.Raw {
	answer, err := peerwire.ReadAnswer(response)
	if err != nil {
		return nil
	}
	if answer.Reply != nil {
		answer.Reply, answer.Code = nil, peerwire.CodeMalformed
		answer.Detail = "The reply does not fit into a record."
	} else {
		answer.Detail = ""
	}
	return answer.Body()
}
