package gate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/topics"
)

// A process without room for g2 crashes before it writes the row. The next one reads the approval of g1 first, has room, and a
// person approves g2: the outcome is the same.
func TestGateWithoutRoomEndsInOneWayAcrossACrash(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.OpenLimit = 1 })
	p.Handle(p.request("g1"))
	saved := p.Row
	request := p.request("g2")
	es := p.Handle(request)
	asked := closes(es)
	require.Len(t, asked, 1)
	require.Empty(t, outcomes(es), "the gate ends when the record is read")
	noRoom := p.decided(topics.GateDecision(asked[0]))
	first := outcome(t, p.Handle(noRoom))
	require.Equal(t, topics.GateDenied, first.Status)
	require.Equal(t, topics.CauseNoRoom, first.Cause)
	require.Equal(t, textTooMany, first.Reason)
	require.Equal(t, "t1/0/tool-use/g2", first.CallID)
	require.Equal(t, "toolu_g2", first.ToolUseID)

	p.Row = saved
	outcome(t, p.Handle(p.approve("g1")))
	require.Empty(t, p.Handle(request), "there is room")
	require.Equal(t, first, outcome(t, p.Handle(noRoom)))
	require.Empty(t, p.Handle(p.approve("g2")))
}

func TestNoDecisionIsAcceptedForAGateWithoutRoom(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.OpenLimit = 1 })
	p.Handle(p.request("g1"))
	asked := closes(p.Handle(p.request("g2")))
	require.Len(t, asked, 1)
	require.Equal(t, reasonNoRoom, letter(t, p.Handle(p.approve("g2"))))
	require.Equal(t, reasonNoRoom, letter(t, p.Handle(p.decision("g2", "d2", topics.VerdictDeny))))
	byGrant := p.decided(topics.GateDecision{
		GateID: "g2", SessionID: p.key, DecisionID: "c", Verdict: topics.VerdictClose, Cause: topics.CauseGrant, By: "ines",
	})
	require.Empty(t, p.Handle(byGrant))
	require.Len(t, gates(p.key, p.Read()), 1, "no one is asked")
	g := p.Read().Open[1]
	require.Empty(t, g.Args)
	require.Equal(t, string(topics.CauseNoRoom), g.Closing)
	require.Empty(t, p.Handle(p.request("g2")), "a repeat")

	p.Now = p.Now.Add(closeAgain)
	again := closes(p.Handle(deadlineCame{}))
	require.Equal(t, asked, again, "it is written again if it does not come back")
	require.Equal(t, topics.CauseNoRoom, outcome(t, p.Handle(p.decided(topics.GateDecision(again[0])))).Cause)
}

// An answer that waited for its request needs no room.
func TestHeldDecisionCountsWithoutRoom(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.OpenLimit = 1 })
	p.Handle(p.request("g1"))
	p.Handle(p.approve("g2"))
	require.Equal(t, topics.GateApproved, outcome(t, p.Handle(p.request("g2"))).Status)
}

func TestGatesWithoutRoomAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*topics.GateRequest)
		most   int
	}{
		"count": {func(*topics.GateRequest) {}, maxNoRoom},
		"bytes": {func(r *topics.GateRequest) {
			r.TurnID, r.InteractionID = strings.Repeat("x", maxID), strings.Repeat("y", maxID)
		}, noRoomReserve / (2 * maxID)},
	} {
		p := newHarness(t, func(c *Config) { c.RowLimit = minRecord - rowMargin })
		fill := p.request("fill", func(r *topics.GateRequest) {
			r.Args, r.ArgsSHA256 = topics.Raw(`"`+strings.Repeat("x", 31_000)+`"`), ""
		})
		p.Handle(fill)
		require.Len(t, gates(p.key, p.Read()), 1, name)
		waiting, ended := 0, 0
		for i := range maxNoRoom + 5 {
			es := p.Handle(p.request(fmt.Sprint("g", i), c.change, func(r *topics.GateRequest) {
				r.Message = strings.Repeat("m", 4000)
			}))
			if len(outcomes(es)) == 0 {
				waiting++
				continue
			}
			ended++
			require.Equal(t, topics.CauseNoRoom, outcome(t, es).Cause, name)
		}
		require.LessOrEqual(t, waiting, c.most, name)
		require.Greater(t, waiting, 3, name)
		require.Positive(t, ended, name)
		require.NotNil(t, p.Read().Open, name)
	}
}

// A row that is too large for a smaller limit keeps its gates until their records are read.
func TestNewestGatesAreRefusedIfTheRowIsTooLarge(t *testing.T) {
	p := newHarness(t)
	for i := range 4 {
		p.Handle(p.request(fmt.Sprint("g", i), func(r *topics.GateRequest) {
			r.Args, r.ArgsSHA256 = topics.Raw(`"`+strings.Repeat("x", 30_000)+`"`), ""
		}))
	}
	p.config.RowLimit = minRecord - rowMargin
	es := p.Handle(p.withdrawal("g0", topics.CauseSuperseded))
	require.Empty(t, outcomes(es))
	asked := closes(es)
	require.Equal(t, "g3/close/no_room", asked[1].DecisionID)
	require.Len(t, p.Read().Open, 4)
	for _, c := range asked[1:] {
		require.Equal(t, topics.CauseNoRoom, outcome(t, p.Handle(p.decided(c))).Cause)
	}
}

// The record that approves by a grant counts only if it was written before the deadline.
func TestGrantDoesNotCountAfterTheDeadline(t *testing.T) {
	for _, late := range []time.Duration{-time.Millisecond, 0, time.Second} {
		p := newHarness(t, withRules(approval.Rule{Tool: "pay", Effect: approval.Ask}))
		p.grants = &gaterow.Grants{Grants: []*gaterow.Grant{{Id: "g0", Agent: "quay", Tool: "pay", By: "ines"}}}
		asked := closes(p.Handle(p.request("g1")))
		require.Len(t, asked, 1)
		p.Now = time.UnixMilli(p.Read().Open[0].ExpiresMs).UTC().Add(late)
		es := p.Handle(p.decided(topics.GateDecision(asked[0])))
		if late < 0 {
			require.Equal(t, topics.CauseGrant, outcome(t, es).Cause)
			continue
		}
		require.Empty(t, outcomes(es))
		closes := closes(es)
		require.Len(t, closes, 1)
		require.Equal(t, topics.CauseDeadline, closes[0].Cause)
		require.Equal(t, topics.GateTimedOut, outcome(t, p.Handle(p.decided(topics.GateDecision(closes[0])))).Status)
	}
}
