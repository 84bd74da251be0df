package turn

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
)

// closeSteps gives the session a past of closed steps, two a row, which are in parts where they are many.
func (p *play) closeSteps(count int) {
	p.tb.Helper()
	for n := 0; n < count; n += 2 {
		p.rewrite(func(s *turnrow.State) {
			for m := n; m < min(n+2, count); m++ {
				closeStep(s, m)
			}
		})
	}
	if s := p.state(); count > stepsInline/stepSize {
		require.Len(p.tb, s.Steps, min(count, maxSteps)*stepSize)
		require.Equal(p.tb, uint32(rowSteps), s.Version)
	}
}

func closeStep(s *turnrow.State, n int) {
	d := digests.Of(ofEnd, fmt.Sprint("step ", n))
	s.Turn = &turnrow.OpenTurn{Input: d[:], InputHistoryLength: uint32(n)}
	(&transition{session: session{row: s}}).rememberStep()
	s.Turn = nil
}

// A late response is known by its step, whether that is in the row or in a part, and whether the state was kept or
// read. Of more steps than are remembered the first are forgotten, though their part may still be there.
func TestLateResponseIsRecognizedByAStepInAPart(t *testing.T) {
	p := newPlay(t)
	var past []enriched
	for n := range maxSteps + 5 {
		asked := p.ask(fmt.Sprint("question ", n))
		p.respond(asked, saying("answer"))
		past = append(past, asked)
	}
	row, err := turnrow.Table.Unmarshal(p.row)
	require.NoError(t, err)
	require.NotEmpty(t, row.StepsParts)
	require.Greater(t, lengthOf(row.StepsParts)+len(row.Steps), maxSteps*stepSize, "a part has some that were dropped")
	open := p.ask("the last question")
	for n, asked := range past[5:] {
		if n%3 == 0 {
			p.restart()
		}
		require.Equal(t, []string{reasonOtherStep}, p.respond(asked, saying("late")).letters(), n)
	}
	require.NotEmpty(t, emitted[answered](p.respond(past[4], saying("taken"))), "the oldest is not remembered")
	require.Equal(t, []string{reasonNoStep}, p.respond(open, saying("too late")).letters())
}

// Rows of older builds have all their steps in themselves. They are read, and their steps are in parts once they are
// written again; a row without parts keeps its version.
func TestOlderRowsGetPartsWhenTheyAreWritten(t *testing.T) {
	for version := uint32(1); version <= rowVersion; version++ {
		for _, count := range []int{3, 12, 13, maxSteps} {
			p := newPlay(t)
			s := &turnrow.State{Version: version, TouchedMs: p.now.UnixMilli()}
			for n := range count {
				closeStep(s, n)
			}
			var err error
			p.row, err = turnrow.Table.Marshal(s)
			require.NoError(t, err)
			steps := string(s.Steps)
			p.ask("one")
			require.Equal(t, steps, string(p.state().Steps))
			written, err := turnrow.Table.Unmarshal(p.row)
			require.NoError(t, err)
			if count <= 12 {
				require.Equal(t, version, written.Version)
				continue
			}
			require.Equal(t, uint32(rowSteps), written.Version)
			require.Empty(t, written.Steps)
			require.Equal(t, len(steps), lengthOf(written.StepsParts))
		}
	}
}

// A table that takes no parts keeps the steps in the row, as ever.
func TestStepsStayInTheRowOfATableWithoutParts(t *testing.T) {
	s := &turnrow.State{Version: rowVersion}
	l := loadAll(t, s, table{}, nil)
	for n := range maxSteps {
		closeStep(s, n)
	}
	write, _, _ := l.divide(s, 0)
	require.Empty(t, write)
	require.Len(t, s.Steps, maxSteps*stepSize)
	require.Equal(t, uint32(rowVersion), s.Version)
}

// A row whose steps are in parts is not read where there are no parts: its late responses would be taken for answers.
func TestStepsInPartsAreNotReadByATableWithoutParts(t *testing.T) {
	p := newPlay(t)
	p.closeSteps(30)
	e, _ := p.event("message-input", []byte(message("one")))
	_, err := p.newBinding().decide(table{p.row, nil}, e, p.now)
	require.ErrorIs(t, err, rows.ErrVersion)
}

// A session that was purged knows the steps that are in parts, and its row says so.
func TestPurgeKeepsTheStepsInParts(t *testing.T) {
	p := newPlay(t)
	p.closeSteps(30)
	before := string(p.state().Steps)
	p.send("session-control", `{"action":"purge"}`)
	require.Equal(t, before, string(p.state().Steps))
	require.Equal(t, uint32(rowSteps), p.state().Version)
	p.wait(p.rules.RememberFor)
	require.Nil(t, p.row)
	require.Empty(t, p.parts)
}
