package websocket

import (
	"crypto/rand"
	"net/http"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/processors/internal/socket"
)

// everySession is the session_id of an operator's subscription.
const everySession = "*"

// reasonOperator is why an operator's subscription does not resume.
const reasonOperator = "a subscription to all sessions does not resume: subscribe to one session"

// operator reports whether a caller may see all sessions. A caller's sessions are a function, so it is called with an ID that
// no pattern contains but one for all sessions, and with "*", so that a session of that name is not enough.
func (c *Config) operator(caller auth.Caller) bool {
	return c.Authenticate != nil && c.Operators != nil && caller.Can(auth.Read|auth.Control) &&
		caller.Allowed(everySession) && caller.Allowed(rand.Text()) && c.Operators(caller)
}

// watch handles a subscription to all sessions.
func (s *subscriber) watch(sub subscription) {
	config := s.server.config
	if !config.operator(s.visit.Caller) {
		s.refuse(sub.session, s.visit.Refuse(&entrance.Refusal{Status: http.StatusForbidden, Text: "Forbidden"}))
		return
	}
	if refusal := s.visit.Session(sub.session); refusal != nil {
		s.refuse(sub.session, refusal)
		return
	}
	s.stop()
	if sub.last != "" && !s.client.Show(socket.Frame{Text: resumed(sub.session, 0, reasonOperator)}) {
		return
	}
	s.server.hub.watch(s.client)
	config.Logger.Info("an operator sees all sessions",
		zap.String("agent", s.server.agent), zap.String("subject", s.visit.Caller.Name()))
}
