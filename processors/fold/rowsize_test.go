package fold

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/foldrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// The largest windows and the most open turns that the options allow, with the smallest record limit.
func TestRowWithManyHeldRecordsFitsIntoARecord(t *testing.T) {
	p := newPlay(t, func(c *Config) { c.RecordLimit, c.OpenTurns, c.WindowCount = minRecord, maxOpen, maxWindow })
	row := &foldrow.Row{Version: rowVersion, DeadlineMs: 1}
	for i := range 4 {
		turn := &foldrow.Turn{Id: "t" + strconv.Itoa(i), Attempt: 1, Seq: 1, TouchedMs: p.now.UnixMilli(), GapMs: p.now.UnixMilli()}
		for seq := range 1200 + i {
			turn.Held = append(turn.Held, &foldrow.Held{Seq: uint64(3+seq) << 40})
		}
		row.Open = append(row.Open, turn)
	}
	var err error
	p.row, err = foldrow.Table.Marshal(row)
	require.NoError(t, err)
	ahead := streamRecord(t, topics.AgentEvent{
		TurnID: "t0", Seq: 1 << 60, Author: topics.AuthorUser, Event: topics.Raw(`{"type":"message"}`),
	})
	require.Equal(t, "t3", p.handle(ahead).batches()[0].TurnID, "the one that holds the most")
	require.Equal(t, "failed gap", outcomeOf(p.only("t3")))
	require.Len(t, p.state().Open, 3)

	p = newPlay(t, func(c *Config) { c.RecordLimit, c.OpenTurns = minRecord, maxOpen })
	for i := range maxOpen {
		p.now = p.now.Add(time.Millisecond)
		p.handle(eventRecord(t, "t"+strconv.Itoa(i), 1, startEvent("m")))
	}
	require.Equal(t, "expired too_many_turns", outcomeOf(p.only("t0")))
	require.Less(t, len(p.state().Open), maxOpen)
	p.settle()
}

// The options were changed by a restart, or the clock was set back.
func TestEarlyDeadlineIsSetAgain(t *testing.T) {
	p := newPlay(t)
	p.begin("t")
	was, _ := rows.Deadline(p.row)
	p.config.Silence *= 2
	p.now = time.UnixMilli(was).UTC()
	out := p.decide(deadlineReached{})
	require.True(t, out.Changed, "a row that is not written has its deadline forgotten")
	require.Empty(t, out.Effects)
	require.Equal(t, was+p.config.Silence.Milliseconds()/2, out.Row.DeadlineMs)
	p.perform(deadlineReached{}, out)
	p.until(p.config.Silence)
	require.Equal(t, "expired silence", outcomeOf(p.only("t")))
	require.False(t, p.decideWithout(deadlineReached{}).Changed, "there is no row to write")
}

// decideWithout applies an input to a session without a row.
func (p *play) decideWithout(in input) machine.Outcome[*foldrow.Row] {
	p.tb.Helper()
	out, err := apply(nil, "s", in, nil, p.now, quay, p.config)
	require.NoError(p.tb, err)
	return out
}
