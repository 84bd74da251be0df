package turn

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
)

// said is what a tool says in these tests: so much that it is stored in parts.
var said = strings.Repeat("N4 ", 1000)

// midway is a session in its second step, two of whose three calls have ended: the conversation and the results are
// in parts.
func midway(t tb) *play {
	p := newPlay(t)
	p.respond(p.ask("one"), calling("t1"))
	asked := the[enriched](t, p.result("t1", said))
	p.respond(asked, calling("t2", "t3", "t4"))
	p.result("t3", said+"third")
	p.result("t2", said+"second")
	s, err := turnrow.Table.Unmarshal(p.row)
	require.NoError(t, err)
	require.NotEmpty(t, s.Turn.TailParts)
	require.NotEmpty(t, s.Turn.ResultsParts)
	require.Equal(t, uint32(rowTurn), s.Version, "an older build would wait for what has come")
	return p
}

func TestResultsInPartsAreReadWhenTheStepEnds(t *testing.T) {
	p := midway(t)
	content := string(the[toolMessage](t, p.result("t4", said+"fourth")).Content)
	for _, text := range []string{"second", "third", "fourth"} {
		has(t, content, said+text)
	}
	require.Less(t, strings.Index(content, "second"), strings.Index(content, "third"), "in the order of the calls")
	s, err := turnrow.Table.Unmarshal(p.row)
	require.NoError(t, err)
	require.Empty(t, s.Turn.ResultsParts)
	require.Empty(t, s.Turn.Results)
	require.NotEmpty(t, s.Turn.TailParts)
}

// The parts of a turn go with it, and its row is one that older builds read.
func TestEndedTurnLeavesNoParts(t *testing.T) {
	for end, f := range map[string]func(*play){
		"answered": func(p *play) {
			p.respond(the[enriched](t, p.result("t4", "x")), saying("done"))
		},
		"timed out": func(p *play) {
			p.wait(p.rules.ToolTimeout)
			p.wait(p.rules.ThinkTimeout)
		},
		"cancelled": func(p *play) { p.send("session-control", `{"action":"cancel"}`) },
		"purged":    func(p *play) { p.send("session-control", `{"action":"purge"}`) },
	} {
		t.Run(end, func(t *testing.T) {
			p := midway(t)
			f(p)
			s := p.state()
			require.Nil(t, s.Turn)
			require.Equal(t, uint32(rowVersion), s.Version)
			row, err := turnrow.Table.Unmarshal(p.row)
			require.NoError(t, err)
			require.Len(t, p.parts, len(row.HistoryParts), "of what is left")
		})
	}
}

// A turn that a defect ends takes its parts along.
func TestAbandonedTurnDeletesItsParts(t *testing.T) {
	p := midway(t)
	s, err := turnrow.Table.Unmarshal(p.row)
	require.NoError(t, err)
	out := abandon(s, p.key, internal, p.now, p.rules)
	require.Equal(t, uint32(rowVersion), out.State.Version)
	for _, n := range out.UnusedParts {
		require.Contains(t, p.parts, n)
		delete(p.parts, n)
	}
	require.Empty(t, p.parts)
}

// A result needs neither the conversation nor the results before it, but for the last.
func TestResultThatDoesNotEndItsStepReadsNoParts(t *testing.T) {
	p := midway(t)
	p.send("message-input", message("another"))
	b := p.newBinding()
	from := &counted{table: table{p.row, p.parts}}
	p.respond(the[enriched](t, p.result("t4", "x")), calling("t5", "t6"))
	from.table = table{p.row, p.parts}
	e, ok := p.event("tool-use-result", []byte(toolResult("t5", "y")))
	require.True(t, ok)
	d, err := b.decide(from, e, p.now)
	require.NoError(t, err)
	require.True(t, d.Changed)
	require.Zero(t, from.reads)
	require.Empty(t, d.NewParts)
	require.Less(t, len(d.row), 4<<10)
}

// Rows of older builds have their results in the calls.
func TestResultsOfOlderRowsAreKept(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("one"), calling("t1", "t2", "t3"))
	s := p.state()
	s.Turn.Calls[1].Result = &turnrow.Result{ToolUseId: s.Turn.Calls[1].ToolUseId, Result: []byte(`{"said":"older"}`)}
	s.Version = rowVersion
	var err error
	p.row, err = turnrow.Table.Marshal(s)
	require.NoError(t, err)
	p.partsOf[string(p.row)] = p.parts
	require.Equal(t, []string{reasonNoCall}, p.result("t2", "again").letters())
	p.result("t3", "new")
	content := string(the[toolMessage](t, p.result("t1", "last")).Content)
	for _, text := range []string{"older", "new", "last"} {
		has(t, content, text)
	}
}

// A row whose results cannot be read ends its turn at the deadline, and not the processor.
func TestResultThatCannotBeReadIsADefect(t *testing.T) {
	p := midway(t)
	s, err := turnrow.Table.Unmarshal(p.row)
	require.NoError(t, err)
	s.Turn.Calls[0].ResultLength += 100_000
	row, err := turnrow.Table.Marshal(s)
	require.NoError(t, err)
	e, ok := p.event("tool-use-result", []byte(toolResult("t4", "x")))
	require.True(t, ok)
	_, err = p.newBinding().decide(table{row, p.parts}, e, p.now)
	require.ErrorIs(t, err, errBroken)
}

func TestDescribeShowsTheSizeOfResultsInParts(t *testing.T) {
	p := midway(t)
	p.respond(the[enriched](t, p.result("t4", "x")), calling("t5", "t6", "t7"))
	p.result("t5", said)
	p.result("t6", "short")
	s, err := turnrow.Table.Unmarshal(p.row)
	require.NoError(t, err)
	text := describe(s)
	require.Contains(t, text, `"t5": ended, 3`)
	require.Contains(t, text, `"t6": success, 16 bytes`)
	require.Contains(t, text, `"t7": open`)
}
