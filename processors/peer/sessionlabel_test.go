package peer

import (
	"testing"
	"time"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
)

func TestSessionOfALabelWithTwoDashesIsNotThatOfASubAgent(t *testing.T) {
	for _, label := range []string{"partner--b", "partner---b", "partner-b-", "--", "partner-with-a-very-long-label-x--b"} {
		p := newHarness(t)
		p.configure(func(s *Settings) {
			s.Inbound = []Inbound{{ID: label, AllowedTools: []string{ToolName}}}
		})
		p.key = peerwire.SessionID(label, "t-9")
		p.Set(&peerrow.State{Version: peerrow.Version, TouchedMs: p.Now.UnixMilli(), Run: &peerrow.Run{
			TaskId: "t-9", InboundId: label, RunId: "peer_9", Hops: 1, ExpiresMs: p.Now.Add(time.Minute).UnixMilli(),
		}})
		attemptOf(t, p.Handle(p.delegation(callID, asking)))
	}
}
