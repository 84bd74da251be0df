package websocket

import (
	"crypto/rand"
	"net/http"

	ws "github.com/coder/websocket"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// everySession is the session_id of an operator's subscription.
const everySession = "*"

// reasonOperator is why an operator's subscription does not resume.
const reasonOperator = "a subscription to all sessions does not resume: subscribe to one session"

// WithOperators allows operators: clients that subscribe to the session "*" and receive the frames of all sessions (default:
// none; such a subscription is refused). An operator's caller has the rights auth.Read and auth.Control, its sessions
// contain every ID, and allow returns true for it. allow must deny a caller whose MayUse excludes only some sessions. allow
// is called for each such subscription, by several goroutines, and may block. It must not be nil. New returns an error
// without WithAuthenticate.
//
// Operators receive the new frames of all sessions, without their gates. A subscription to "*" cannot be resumed; an
// event_id is that of the frame's session. An operator that reads too slowly is disconnected like any client (WithQueue).
func WithOperators(allow func(auth.Caller) bool) Option {
	return func(r *rules) {
		if allow == nil {
			r.invalid("WithOperators: nil")
		}
		r.operators = allow
	}
}

// WithEverySessionToEveryone sends each pipeline_event to all clients, whatever they have subscribed to, and the
// chat_response of a session without subscribers to all clients, as FlightDeck does (default: only the subscribers of a
// session receive its frames). Every client can then read every session: use it in trusted networks only. New logs a
// warning, and returns an error with WithAuthenticate.
func WithEverySessionToEveryone() Option { return func(r *rules) { r.everyone = true } }

// checkAudience records the errors of the options that let clients see all sessions.
func (r *rules) checkAudience() {
	if r.operators != nil && r.authenticate == nil {
		r.invalid("WithOperators requires WithAuthenticate")
	}
	if r.everyone && r.authenticate != nil {
		r.invalid("WithEverySessionToEveryone cannot be used with WithAuthenticate")
	}
}

// operator reports whether a caller may see all sessions. A caller's sessions are a function, so it is called with an ID that
// no pattern contains but one for all sessions, and with "*", so that a session of that name is not enough.
func (r *rules) operator(c auth.Caller) bool {
	return r.authenticate != nil && r.operators != nil && c.Can(auth.Read|auth.Control) &&
		c.Allowed(everySession) && c.Allowed(rand.Text()) && r.operators(c)
}

// watch handles a subscription to all sessions.
func (s *subscriber) watch(sub subscription) {
	rules := s.server.rules
	if !rules.operator(s.visit.Caller) {
		s.refuse(sub.session, s.visit.Refuse(&entrance.Refusal{Status: http.StatusForbidden, Text: "Forbidden"}))
		return
	}
	if refusal := s.visit.Session(sub.session); refusal != nil {
		s.refuse(sub.session, refusal)
		return
	}
	s.stop()
	if sub.last != "" && !s.client.queue.put(item{text: resumed(sub.session, 0, reasonOperator)}) {
		s.client.end(ws.StatusTryAgainLater, reasonSlow)
		return
	}
	s.server.hub.watch(s.client)
	rules.logger.Info("an operator sees all sessions",
		zap.String("agent", s.server.agent), zap.String("subject", s.visit.Caller.Name()))
}
