package turn

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// largeText is so long that a prompt with it is stored in a part.
var largeText = strings.Repeat("N4 ", 10_000)

// prompted is a session whose open step was sent a tool's large result. The prompt is in a part.
func prompted(t tb) (*play, enriched) {
	t.Helper()
	p := newPlay(t)
	p.respond(p.ask("one"), calling("t1"))
	asked := the[enriched](t, p.result("t1", largeText))
	require.Len(t, p.stored().Turn.PromptParts, 1)
	require.Empty(t, p.stored().Turn.Prompt)
	require.Equal(t, uint32(rowPrompt), p.stored().Version)
	require.Equal(t, string(asked.LatestInput), string(p.state().Turn.Prompt))
	return p, asked
}

func TestLargePromptIsWrittenOnceAndItsStateIsCached(t *testing.T) {
	p, asked := prompted(t)
	before := p.wrote
	const events = 20
	for n := range events {
		require.Less(t, len(p.row), cacheRow)
		require.True(t, p.bind.cache.has(p.key, p.row))
		p.send("reply-to", namedRoute(fmt.Sprint("r", n)))
	}
	require.Less(t, p.wrote-before, events*8<<10, "the prompt is not written again")
	p.bind.rules = p.rules
	from := &counted{table: p.table()}
	e, ok := p.event("think-request-response", []byte(response(asked, saying("done"))))
	require.True(t, ok)
	out, err := p.bind.decide(from, e, p.now)
	require.NoError(t, err)
	require.True(t, out.Changed)
	require.Zero(t, from.reads)
}

func TestResponseThatOmitsALargeInputIsCompletedFromTheParts(t *testing.T) {
	p, asked := prompted(t)
	p.send("think-request-response", `{"cost":0.75,"last_input_response":[{"role":"assistant","content":"done"}],"end_turn":true}`)
	history, err := topics.Elements(p.ask("more").History)
	require.NoError(t, err)
	require.JSONEq(t, string(asked.LatestInput), string(history[len(history)-2]))
}

func TestToolCallsThatOmitALargeInputAndATextAreCompletedFromTheParts(t *testing.T) {
	p, asked := prompted(t)
	p.send("think-request-response", `{"cost":0.75,"tool_uses":[{"tool_use_id":"t2","name":"look"}]}`)
	history, err := topics.Elements(the[enriched](t, p.result("t2", "x")).History)
	require.NoError(t, err)
	require.JSONEq(t, string(asked.LatestInput), string(history[len(history)-1]))
}

// Rows of older builds have a prompt of any size in the row itself.
func TestLargePromptOfAnOlderRowIsRead(t *testing.T) {
	p, asked := prompted(t)
	older := p.state()
	older.Version = rowTurn
	p.keepState(older)
	require.Greater(t, len(p.row), len(largeText))
	p.partsOf[string(p.row)] = p.parts
	row := p.row
	for name, said := range map[string]string{
		"echoed":  response(asked, saying("done")),
		"omitted": `{"cost":0.75,"last_input_response":[{"role":"assistant","content":"done"}],"end_turn":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			p.row, p.parts = row, map[uint32][]byte{}
			require.Equal(t, "done", the[answered](t, p.send("think-request-response", said)).Content)
			has(t, string(p.state().History), strings.TrimSpace(largeText))
		})
	}
	t.Run("moved to a part", func(t *testing.T) {
		p.row, p.parts = row, map[uint32][]byte{}
		p.send("reply-to", namedRoute("r1"))
		require.Len(t, p.stored().Turn.PromptParts, 1)
		require.Equal(t, string(asked.LatestInput), string(p.state().Turn.Prompt))
	})
}

// However the step ends, the parts of its prompt are deleted, and older builds read the row again.
func TestEndedStepLeavesNoPartsOfItsPrompt(t *testing.T) {
	for end, f := range map[string]func(*play, enriched){
		"answered":  func(p *play, asked enriched) { p.respond(asked, saying("done")) },
		"calls":     func(p *play, asked enriched) { p.respond(asked, calling("t2")) },
		"timed out": func(p *play, _ enriched) { p.wait(p.rules.ThinkTimeout) },
		"failed": func(p *play, asked enriched) {
			p.send("think-dlq", `{"latest_input":`+string(asked.LatestInput)+`}`)
		},
		"cancelled": func(p *play, _ enriched) { p.send("session-control", `{"action":"cancel"}`) },
		"purged":    func(p *play, _ enriched) { p.send("session-control", `{"action":"purge"}`) },
		"next turn": func(p *play, asked enriched) {
			p.send("message-input", message("waits"))
			p.respond(asked, saying("done"))
		},
		"next large turn": func(p *play, asked enriched) {
			p.send("message-input", message(largeText))
			p.respond(asked, saying("done"))
			require.Len(p.tb, p.stored().Turn.PromptParts, 1)
			p.send("session-control", `{"action":"cancel"}`)
		},
	} {
		t.Run(end, func(t *testing.T) {
			p, asked := prompted(t)
			numbers := numbersOf(p.stored().Turn.PromptParts)
			f(p, asked)
			s := p.stored()
			require.Empty(t, s.Turn.GetPromptParts())
			require.LessOrEqual(t, s.Version, uint32(rowTurn))
			for _, n := range numbers {
				require.NotContains(t, p.parts, n)
			}
		})
	}
	t.Run("abandoned", func(t *testing.T) {
		p, _ := prompted(t)
		numbers := numbersOf(p.stored().Turn.PromptParts)
		out := abandon(p.stored(), p.key, internal, p.now, p.rules)
		require.Subset(t, out.UnusedParts, numbers)
		require.Equal(t, uint32(rowVersion), out.State.Version)
	})
}

// Parts of a prompt count towards the size of the row, and are given up with it.
func TestLargePromptIsGivenUpBeforeHeldRecords(t *testing.T) {
	p, _ := prompted(t)
	p.rules.RowLimit = p.size() + 600
	p.send("tool-use-result", toolResult("t2", strings.Repeat("y", 1500)))
	require.Empty(t, p.stored().Turn.PromptParts)
	require.Len(t, p.stored().Turn.Held, 1)
	require.Less(t, p.size(), len(largeText))
}

func TestGivableBytesOfALargePromptAreExact(t *testing.T) {
	p, _ := prompted(t)
	s := &transition{session: session{row: p.stored()}}
	size, givable := stateSize(s.row), s.givable(memories)
	require.True(t, s.forgetPrompt())
	require.Equal(t, givable, size-stateSize(s.row))
	require.Zero(t, s.givable(memories))
}

// An echo of a large prompt is compared without reading its parts; a response that omits it needs them.
func TestOnlyAResponseThatOmitsALargePromptReadsIt(t *testing.T) {
	p, asked := prompted(t)
	p.rewrite(func(s *turnrow.State) { // no other field has parts
		s.Turn.Responded, s.Turn.Tail, s.Turn.Shared = false, nil, 0
	})
	require.Len(t, p.parts, 1)
	unreadable := errors.New("disk failed")
	from := &failing{err: unreadable}
	apply := func(value string) (outcome, error) {
		e, ok := p.event("think-request-response", []byte(value))
		require.True(t, ok)
		return applied(p.stored(), e, from, p.now, p.rules)
	}
	out, err := apply(response(asked, saying("done")))
	require.NoError(t, err)
	require.True(t, out.Changed)
	out, err = apply(`{"cost":0.75,"last_input_response":[{"role":"assistant","content":"done"}],"end_turn":true}`)
	require.ErrorIs(t, err, unreadable)
	require.Equal(t, outcome{}, out)
}

// The own tool message is recognized by its bytes without decoding it, however large it is.
func TestLargeOwnToolMessageIsRecognizedByItsBytes(t *testing.T) {
	p, asked := prompted(t)
	known := func() bool { return p.bind.cache.isToolMessage(p.key, asked.LatestInput) }
	require.True(t, known())
	_, cached, ok := p.bind.cache.histories.GetOldest()
	require.True(t, ok)
	p.bind.cache.dropHistory(cached)
	require.False(t, known(), "the prompt is not cached")
}
