package whole

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// A turn pauses at a real gate and is continued by each form of an answer, or by a decision on the topic; the door and the gates
// are killed between.
func TestPausedTurnEndsWithItsDecision(t *testing.T) {
	decide := func(p *pausedWorld, session, turn string, n int, verdict topics.GateVerdict) {
		require.NoError(p.t, put(p.ctx, p.world, p.catalog.GateDecisions, session, topics.GateDecision{
			GateID: topics.GateID(session, turn, folder.GateCall(turn, 1, n)), SessionID: session, DecisionID: turn + "/" + string(verdict),
			Verdict: verdict, By: "mira", Via: "test",
		}, ""))
	}
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		p := newPausedWorld(t, guarantee, fold.Config{})
		d := p.door()
		for name, tt := range map[string]struct {
			answer func(session, turn string) response
			late   bool
		}{
			"token":              {answer: func(s, _ string) response { return d.answer(s, "x", `{}`, `{"approved":true,"interactionToken":"r0"}`) }},
			"tool call":          {answer: func(s, _ string) response { return d.answer(s, "t0", `{"eur":1000}`, `{"approved":true}`) }},
			"tool and arguments": {answer: func(s, _ string) response { return d.answer(s, "new", `{"eur":0.0}`, `{"approved":true}`) }},
			"decision on the topic": {answer: func(s, turn string) response {
				decide(p, s, turn, 0, topics.VerdictApprove)
				p.batch(turn)
				return d.post(`{"session_id":"`+s+`"}`, "Last-Event-ID", turn+".1.3")
			}},
			"the process of the first request is gone": {answer: func(s, _ string) response {
				d.stop()
				d = p.door()
				return d.answer(s, "t0", `{}`, `{"approved":true}`)
			}},
			"the groups are killed": {answer: func(s, turn string) response {
				p.gates.kill()
				p.folds.kill()
				decide(p, s, turn, 0, topics.VerdictApprove)
				p.startGates()
				p.startFold()
				p.batch(turn)
				return d.answer(s, "t0", `{}`, `{"approved":true}`, "Idempotency-Key", "other")
			}, late: true},
			"late": {answer: func(s, turn string) response {
				decide(p, s, turn, 0, topics.VerdictApprove)
				p.batch(turn)
				return d.answer(s, "t0", `{}`, `{"approved":false}`)
			}, late: true},
		} {
			session := strings.ReplaceAll(name, " ", "-")
			asked := d.ask(session, 1)
			require.Equal(t, http.StatusOK, asked.status, asked.body)
			require.Contains(t, asked.body, `"paused"`, name)
			rest := tt.answer(session, asked.turn)
			if tt.late {
				require.Equal(t, http.StatusConflict, rest.status, "%s: %s", name, rest.body)
				require.Contains(t, rest.body, `"approved"`, name)
			} else {
				require.Equal(t, http.StatusOK, rest.status, "%s: %s", name, rest.body)
				require.Contains(t, rest.body, "Outcomes: approved.", name)
				require.Contains(t, rest.body, "Paying.", name)
			}
			b := p.batch(asked.turn)
			require.Equal(t, topics.BatchComplete, b.State, name)
			require.Equal(t, `"end_turn"`, b.StopReason.String(), name)
			require.Contains(t, b.Messages.String(), "Paying.", name)
			require.Contains(t, b.Messages.String(), "Outcomes: approved.", name)
		}
	})
}

func TestSeveralGatesOfAPausedTurn(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		p := newPausedWorld(t, guarantee, fold.Config{})
		d := p.door()
		asked := d.ask("s", 3)
		for i, answer := range []string{`{"approved":true}`, `{"approved":false}`, `{"approved":true}`} {
			call := "t" + string(rune('0'+i))
			a := d.answer("s", call, `{}`, answer)
			require.Equal(t, http.StatusOK, a.status, a.body)
			if i < 2 {
				require.Contains(t, a.body, `"paused"`, "others are open")
				continue
			}
			require.Contains(t, a.body, "Outcomes: approved denied approved.")
		}
		require.Contains(t, p.batch(asked.turn).Messages.String(), "Outcomes: approved denied approved.")
	})
}

// No one answers. The deadline of the gate is the only thing that ends it.
func TestPausedTurnThatNoOneAnswers(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		p := newPausedWorld(t, guarantee, fold.Config{GateTimeout: 300 * time.Millisecond})
		d := p.door()
		asked := d.ask("s", 1)
		require.Contains(t, p.batch(asked.turn).Messages.String(), "Outcomes: timed_out.")
		late := d.answer("s", "t0", `{}`, `{"approved":true}`)
		require.Equal(t, http.StatusConflict, late.status, late.body)
		require.Contains(t, late.body, `"timed_out"`)
	})
}
