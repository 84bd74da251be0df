package websocket

import (
	"context"
	"time"

	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/topics"
)

var _ sink.Transport = (*Server)(nil)

// Deliver implements sink.Transport for topics.KindWebSocket. It succeeds when the answer was written to a client of this
// process that has subscribed to the session. The answer's data.id is the same for every attempt. Deliver waits at most the
// write timeout (Config.WriteTimeout).
func (s *Server) Deliver(ctx context.Context, d topics.Delivery) error {
	body, ok := readable(d.Body)
	if !ok {
		return &sink.Failure{Reason: "not readable", Final: true}
	}
	m := members(body, "content", "timestamp", "cost")
	text := completed(chatResponse(answerID(d.SessionID, d.DeliveryID), m), d.SessionID, "")
	written := make(chan struct{}, 1)
	if s.hub.deliver(d.SessionID, noted(text, written)) == 0 {
		return &sink.Failure{Reason: "no client here has subscribed"}
	}
	wait := time.NewTimer(s.config.WriteTimeout)
	defer wait.Stop()
	select {
	case <-written:
		return nil
	case <-wait.C:
		return &sink.Failure{Reason: "timeout"}
	case <-ctx.Done():
		return ctx.Err()
	}
}
