package fold

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/foldrow"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

func TestPausedRunRequestsADecisionAndStaysOpen(t *testing.T) {
	p := newPlay(t, gating)
	es := p.send("t", 1, startEvent("m"), deltaEvent("m", "Paying."), asks("r1", "c1"), doneWith("paused"))
	require.Len(t, es.gates(), 1)
	g := p.gates[gateID("t", 1, 0)]
	require.Equal(t, "s t t/1/interaction/0 tool pay c1 r1 fold", strings.Join([]string{
		g.SessionID, g.TurnID, g.CallID, string(g.Kind), g.Tool, g.ToolUseID, g.InteractionID, g.Origin.Via,
	}, " "))
	require.Equal(t, `{"eur":1.50}`, g.Args.String())
	require.Equal(t, topics.ArgsSHA256(topics.Raw(`{"eur":1.50}`)), g.ArgsSHA256)
	require.Equal(t, "Pay 1 EUR", g.Message)
	require.Equal(t, `[{"optionId":"once","name":"once","kind":"allow_once"},{"optionId":"reject","name":"reject","kind":"reject_once"}]`,
		g.Options.String())
	require.Equal(t, p.now.Add(mostGateTimeout).UnixMilli(), g.ExpiresMS)

	require.Empty(t, p.handle(terminalRecord(t, "t", 5, okResult("paused"))), "the pause is known")
	require.Empty(t, p.until(29*24*time.Hour), "it waits")
	require.Empty(t, p.handle(outcomeRecord(t, "t", 1, 0, topics.GateApproved)))
	require.Empty(t, p.send("t", 6, answersTo("r1"), `{"type":"tool_result","data":{"id":"c1","output":"paid"}}`,
		`{"type":"message","data":{"text":"Paid."}}`, plainDone))
	p.handle(terminalRecord(t, "t", 10, okResult("end_turn")))
	b := p.only("t")
	require.Equal(t, "complete", outcomeOf(b))
	require.Equal(t, `"end_turn"`, b.StopReason.String())
	require.Contains(t, b.Messages.String(), "Paying.")
	require.Contains(t, b.Messages.String(), "Paid.")
	require.Equal(t, "[]", b.PendingInteractions.String())
	require.Empty(t, p.withdrawn)
	p.settle()
}

func (es effects) gates() []topics.GateRequest {
	return machinetest.Values[topics.GateRequest](machinetest.Effects(es))
}

// The ways in which a run pauses, and whether it waits then.
func TestRunsThatPause(t *testing.T) {
	cancel := asks("r1", "c1")
	for name, tt := range map[string]struct {
		events []string
		result *topics.AgentResult
		waits  bool
	}{
		"done":                         {[]string{cancel, doneWith("paused")}, nil, true},
		"done and terminal record":     {[]string{cancel, doneWith("paused")}, ended(okResult("paused")), true},
		"terminal record":              {[]string{cancel}, ended(okResult("paused")), true},
		"terminal record after a done": {[]string{cancel, plainDone}, ended(okResult("paused")), true},
		"second done":                  {[]string{cancel, plainDone, doneWith("paused")}, nil, true},
		"repeated done":                {[]string{cancel, doneWith("paused"), doneWith("paused")}, nil, true},
		"done and terminal record without a reason": {[]string{cancel, doneWith("paused")}, ended(topics.AgentResult{OK: true}), true},
		"nothing is asked":                          {[]string{startEvent("m"), doneWith("paused")}, ended(okResult("paused")), false},
		"answered before":                           {[]string{cancel, answersTo("r1"), doneWith("paused")}, ended(okResult("paused")), false},
		"paused, then failed":                       {[]string{cancel, doneWith("paused")}, ended(topics.AgentResult{}), false},
		"paused, then ended":                        {[]string{cancel, doneWith("paused")}, ended(okResult("end_turn")), false},
		"paused, then done without reason":          {[]string{cancel, doneWith("paused"), plainDone}, ended(okResult("end_turn")), false},
		"another stop reason":                       {[]string{cancel, doneWith("end_turn")}, ended(okResult("end_turn")), false},
		"paused is not the reason of a run":         {[]string{cancel, doneWith("Paused")}, ended(okResult("Paused")), false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, gating)
			p.send("t", 1, tt.events...)
			if tt.result != nil {
				p.handle(terminalRecord(t, "t", int64(len(tt.events)+1), *tt.result))
			}
			p.until(time.Hour)
			if tt.waits {
				require.Empty(t, p.batches)
				require.Equal(t, []string{gateID("t", 1, 0)}, p.opened())
				require.EqualValues(t, rowGates, p.state().Version)
			} else {
				require.Len(t, p.batches, 1)
				require.Empty(t, p.opened())
				require.EqualValues(t, rowVersion, p.state().Version)
			}
			p.settle()
		})
	}
}

func TestTurnWithALongIDDoesNotWait(t *testing.T) {
	for _, length := range []int{folder.MaxGateTurn, folder.MaxGateTurn + 1} {
		p := newPlay(t, gating)
		turn := strings.Repeat("t", length)
		p.send(turn, 1, asks("r1", "c1"), doneWith("paused"))
		p.handle(terminalRecord(t, turn, 3, okResult("paused")))
		require.Equal(t, length > folder.MaxGateTurn, len(p.batches) > 0)
		for _, g := range p.gates {
			require.LessOrEqual(t, len(g.CallID), 256, "a gate accepts no longer one")
		}
	}
}

func TestWithoutTheOptionAPausedRunEnds(t *testing.T) {
	p := newPlay(t)
	p.send("t", 1, asks("r1", "c1"), doneWith("paused"))
	p.handle(terminalRecord(t, "t", 3, okResult("paused")))
	require.Equal(t, `"paused"`, p.only("t").StopReason.String())
	require.Empty(t, p.gates)
	require.EqualValues(t, rowVersion, p.state().Version)
}

func TestUsageOfAPausedRunIsKept(t *testing.T) {
	for _, events := range [][]string{{asks("r1", "c1")}, {asks("r1", "c1"), doneWith("paused")}, {startEvent("m")}} {
		p := newPlay(t, gating)
		result := okResult("paused")
		result.Usage = topics.Raw(`{"input":7}`)
		p.send("t", 1, events...)
		p.handle(terminalRecord(t, "t", int64(len(events)+1), result))
		p.handle(controlReceived{record("c"), topics.Control{Action: topics.ActionCancel}})
		require.Equal(t, `{"input":7}`, p.only("t").Usage.String())
	}
}

func TestTerminalRecordOfAPauseWaitsForTheRecordsBeforeIt(t *testing.T) {
	p := newPlay(t, gating)
	result := okResult("paused")
	result.Usage = topics.Raw(`{"input":7}`)
	p.send("t", 1, asks("r1", "c1"))
	p.handle(terminalRecord(t, "t", 3, result))
	p.handle(terminalRecord(t, "t", 3, result))
	require.Empty(t, p.opened())
	require.EqualValues(t, rowGates, p.state().Version, "an older build would not pause at the held record")
	p.send("t", 4, answersTo("r1"))
	p.send("t", 2, plainDone)
	require.Len(t, p.gates, 1)
	require.EqualValues(t, 4, p.state().Open[0].Seq)
	p.until(time.Hour)
	require.Empty(t, p.batches, "its gate is open")
	p.handle(terminalRecord(t, "t", 5, okResult("end_turn")))
	require.Equal(t, `{"input":7}`, p.only("t").Usage.String())
	p.settle()
}

func TestSeveralGatesOfATurn(t *testing.T) {
	p := newPlay(t, gating)
	p.send("t", 1, asks("r1", "c1"), asks("r2", "c2"), answersTo("r2"), asks("", ""), doneWith("paused"))
	require.Len(t, p.gates, 2, "of the three, one is answered")
	require.Contains(t, p.gates, gateID("t", 1, 2), "requests without an ID have gates, too")
	p.handle(outcomeRecord(t, "t", 1, 0, topics.GateApproved))
	p.until(24 * time.Hour)
	require.Empty(t, p.batches, "one is open")

	// The runner continues with the first answer and pauses again, with one more request. The ID may be the same.
	p.send("t", 6, answersTo("r1"), asks("r1", "c1"), doneWith("paused"))
	require.Len(t, p.gates, 3)
	p.handle(outcomeRecord(t, "t", 1, 2, topics.GateDenied))
	p.handle(outcomeRecord(t, "t", 1, 3, topics.GateTimedOut))
	p.until(29 * time.Minute)
	require.Empty(t, p.batches, "the runner has the time of silence to continue")
	p.until(time.Minute)
	b := p.only("t")
	require.Equal(t, "expired silence", outcomeOf(b))
	require.Equal(t, "[]", b.PendingInteractions.String(), "all are decided")
	require.Equal(t, "null", b.PendingInteraction.String())
	p.settle()
}

// A runner may continue while other gates are open.
func TestRunThatGoesOnKeepsItsGates(t *testing.T) {
	p := newPlay(t, gating)
	p.send("t", 1, asks("r1", "c1"), asks("r2", "c2"), doneWith("paused"))
	p.handle(outcomeRecord(t, "t", 1, 0, topics.GateApproved))
	p.send("t", 4, answersTo("r1"))
	p.until(24 * time.Hour)
	require.Empty(t, p.batches)
	require.Equal(t, p.state().Open[0].Gates, []uint32{1})
	p.handle(terminalRecord(t, "t", 5, okResult("end_turn")))
	require.Equal(t, topics.CauseParentEnded, p.withdrawn[gateID("t", 1, 1)])
	require.Contains(t, p.only("t").PendingInteractions.String(), `"r2"`)
	require.NotContains(t, p.only("t").PendingInteractions.String(), `"r1"`)
}

func TestGateThatDoesNotFitIsDenied(t *testing.T) {
	p := newPlay(t, gating, func(c *Config) { c.RecordLimit, c.TurnLimit = 128<<10, 1<<20 })
	large := `{"type":"interaction_request","data":{"id":"r1","payload":{"toolCall":{"name":"pay","input":"` +
		strings.Repeat("x", 90<<10) + `","title":"` + strings.Repeat("y", 3<<10) + `"},"options":[{"optionId":"` + strings.Repeat("z", 20<<10) + `"}]}}}`
	p.config.RecordLimit = 200 << 10
	p.send("t", 1, large)
	p.config.RecordLimit = 128 << 10
	p.send("t", 2, doneWith("paused"))
	g := p.gates[gateID("t", 1, 0)]
	require.Empty(t, string(g.Args))
	require.Equal(t, "deny", g.Effect, "no one can see what would run")
}

func TestGatesHaveADeadlineByDefault(t *testing.T) {
	p := newPlay(t, func(c *Config) { c.Gates = true })
	p.send("t", 1, asks("r1", "c1"), doneWith("paused"))
	require.Equal(t, p.now.Add(approval.DefaultTTL).UnixMilli(), p.gates[gateID("t", 1, 0)].ExpiresMS)
	p.until(approval.DefaultTTL + gateMargin - time.Millisecond)
	require.Empty(t, p.batches)
	p.until(time.Millisecond)
	require.Equal(t, "expired silence", outcomeOf(p.only("t")))
}

func TestGateTimeoutIsTheDeadlineOfTheGates(t *testing.T) {
	p := newPlay(t, gating, func(c *Config) { c.GateTimeout = time.Hour })
	p.send("t", 1, asks("r1", "c1"), doneWith("paused"))
	require.Equal(t, p.now.Add(time.Hour).UnixMilli(), p.gates[gateID("t", 1, 0)].ExpiresMS)
	p.until(time.Hour + gateMargin - time.Millisecond)
	require.Empty(t, p.batches)
	p.until(time.Millisecond)
	require.Equal(t, "expired silence", outcomeOf(p.only("t")))
}

func TestKindsOfGates(t *testing.T) {
	p := newPlay(t, gating)
	p.send("t", 1,
		`{"type":"interaction_request","data":{"kind":"user_input","payload":{"question":"Which?","requestedSchema":{"type":"string"}}}}`,
		`{"type":"interaction_request","data":{"kind":"client_tool","payload":{"toolName":"locate","input":{}}}}`,
		`{"type":"interaction_request","data":{"kind":"consent","payload":null}}`,
		`{"type":"interaction_request"}`, doneWith("paused"))
	var kinds []string
	for i := range 4 {
		g := p.gates[gateID("t", 1, i)]
		kinds = append(kinds, fmt.Sprint(g.Kind, " ", g.Tool, " ", g.Allowed, " ", g.Message, " ", g.ResponseSchema))
	}
	require.Equal(t, []string{
		`input unknown_tool [answer deny] Which? {"type":"string"}`, `input locate [answer deny]  null`,
		`consent unknown_tool [approve deny]  null`, `tool unknown_tool [approve deny]  null`,
	}, kinds)
}

func TestRowWithGatesIsRefusedByOlderBuilds(t *testing.T) {
	p := newPlay(t, gating)
	p.send("t", 1, asks("r1", "c1"))
	require.EqualValues(t, rowVersion, p.state().Version, "no gate yet")
	p.send("t", 2, doneWith("paused"))
	older := foldrow.Table
	older.Version = rowVersion
	require.ErrorIs(t, func() error { _, err := older.Unmarshal(p.row); return err }(), rows.ErrVersion)
	require.Contains(t, describe(p.state()), "waits for 1 decisions")
	p.handle(outcomeRecord(t, "t", 1, 0, topics.GateApproved))
	require.Contains(t, describe(p.state()), "waits for its runner")
	p.handle(terminalRecord(t, "t", 3, okResult("end_turn")))
	require.NoError(t, func() error { _, err := older.Unmarshal(p.row); return err }(), "without open turns any build can read it")
}
