package turn

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
)

// The table was written under processors.New, with its history in parts, and is read under a plain goka.NewProcessor.
func TestHistoryInPartsIsNotReadByATableWithoutParts(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("one"), saying(strings.Repeat("x", 5000)))
	s, err := turnrow.Table.Unmarshal(p.row)
	require.NoError(t, err)
	require.NotEmpty(t, s.HistoryParts)
	require.Empty(t, s.CausesParts)
	b := p.newBinding()
	e0, _ := p.event("message-input", []byte(message("zero")))
	_, err = b.decide(table{p.row, nil}, e0, p.now)
	require.ErrorIs(t, err, rows.ErrVersion)

	e1, ok := p.event("reply-to", []byte(`{"callbackService":"x"}`))
	require.True(t, ok)
	d, err := b.decide(table{p.row, nil}, e1, p.now)
	require.NoError(t, err)
	require.True(t, d.Changed)
	e2, _ := p.event("message-input", []byte(message("two")))
	_, err = p.newBinding().decide(table{d.row, nil}, e2, p.now)
	require.ErrorIs(t, err, rows.ErrVersion)
	_, err = b.decide(table{d.row, nil}, e2, p.now)
	require.ErrorIs(t, err, rows.ErrVersion)
}

// What is left of an array of nulls is small.
func TestCachedConversationHasNoCapacityForDroppedNulls(t *testing.T) {
	nulls := "[" + strings.Repeat("null,", 200_000) + `{"role":"user","content":"a"}]`
	for said, kept := range map[string]func(*turnrow.State) []byte{
		saying("hi"):  func(s *turnrow.State) []byte { return s.History },
		calling("t1"): func(s *turnrow.State) []byte { return s.Turn.Tail },
	} {
		p := newPlay(t)
		asked := p.ask("one")
		p.send("think-request-response", `{"session_id":"s1","previous_messages":`+nulls+
			`,"last_input_message":`+string(asked.LatestInput)+`,`+said+`}`)
		w, ok := p.bind.cache.take("s1", p.row)
		require.True(t, ok)
		require.NotEmpty(t, kept(w.state))
		require.Less(t, cap(kept(w.state)), 10*len(w.row))
	}
}

// A message that found no room must not stay behind the end of the kept state's Waiting.
func TestRejectedWaitingMessageIsNotKeptInMemory(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("one"), saying(strings.Repeat("x", 400_000)))
	p.ask("two")
	p.send("message-input", message(strings.Repeat("y", 600_000)))
	w, ok := p.bind.cache.take("s1", p.row)
	require.True(t, ok)
	require.Empty(t, w.state.Waiting)
	pinned := 0
	for _, a := range w.state.Waiting[:cap(w.state.Waiting)] {
		if a != nil {
			pinned += len(a.Input)
		}
	}
	require.Zero(t, pinned)
}
