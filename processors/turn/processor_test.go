package turn_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// bench is a turn on the harness, with all its ends.
type bench struct {
	*processortest.Driver
	topics    topics.Catalog
	messages  *processortest.Input[topics.Message]
	responses *processortest.Input[topics.ThinkResponse]
	results   *processortest.Input[topics.ToolUseResult]
	enriched  *processortest.Output[topics.EnrichedMessage]
	calls     *processortest.Output[topics.ToolUseItem]
	complete  *processortest.Output[topics.ToolResults]
	looped    *processortest.Output[topics.Message]
	answers   *processortest.Output[topics.Output]
	letters   *processortest.Output[[]byte]
	rows      *processortest.GroupTable[*turnrow.State]
}

func start(t *testing.T, config turn.Config) *bench {
	graph, err := turn.Graph("quay", config)
	require.NoError(t, err)
	c, err := topics.For("quay")
	require.NoError(t, err)
	d := processortest.New(t, time.UnixMilli(1_790_000_000_000), graph)
	return &bench{
		Driver: d, topics: c,
		messages:  processortest.In(d, c.MessageInput),
		responses: processortest.In(d, c.ThinkRequestResponse),
		results:   processortest.In(d, c.ToolUseResult),
		enriched:  processortest.Out(d, c.EnrichedMessageInput),
		calls:     processortest.Out(d, c.ToolUse),
		complete:  processortest.Out(d, c.ToolUseAllComplete),
		looped:    processortest.Out(d, c.MessageInput),
		answers:   processortest.Out(d, c.MessageOutput),
		letters:   processortest.OutRaw(d, c.DeadLetters()),
		rows:      processortest.Table(d, c.Group(), turnrow.Table.Codec()),
	}
}

func say(session, text string) topics.Message {
	role := "user"
	return topics.Message{SessionID: &session, Role: &role, Content: topics.Raw(`"` + text + `"`)}
}

func saying(asked topics.EnrichedMessage, text string) topics.ThinkResponse {
	return topics.ThinkResponse{
		PreviousMessages: asked.History, LastInputMessage: asked.LatestInput,
		LastInputResponse: topics.Raw(`[{"role":"assistant","content":"` + text + `"}]`), EndTurn: true,
	}
}

func calling(asked topics.EnrichedMessage, id string) topics.ThinkResponse {
	name := "look"
	r := saying(asked, "let me look")
	r.ToolUses, r.EndTurn = []topics.ToolUseItem{{ToolUseID: &id, Name: &name, Input: topics.Raw(`{}`)}}, false
	return r
}

func TestTurnRunsThroughItsTopics(t *testing.T) {
	b := start(t, turn.Config{})
	b.messages.Pipe("s1", say("s1", "Which berth is free?"))
	b.messages.Pipe("s2", say("s2", "Hello"))
	asked := b.enriched.Next()
	other := b.enriched.Next()
	require.Equal(t, "s1", asked.Key)
	require.Equal(t, "s2", other.Key)
	require.NotEqual(t, asked.ID(), other.ID())

	b.responses.Pipe("s1", calling(asked.Value, "t1"))
	call := b.calls.Next()
	require.Equal(t, "t1", *call.Value.ToolUseID)
	require.Equal(t, int64(1), call.Value.TotalTools)

	b.results.Pipe("s1", topics.ToolUseResult{ToolUseID: call.Value.ToolUseID, Result: topics.Raw(`{"berth":"N4"}`)})
	require.Equal(t, int64(1), b.complete.Next().Value.ExpectedCount)
	require.Equal(t, "tool", *b.looped.Next().Value.Role)
	asked = b.enriched.Next()
	require.Contains(t, string(asked.Value.LatestInput), "N4")

	b.responses.Pipe("s1", saying(asked.Value, "N4 is free."))
	b.responses.Pipe("s2", saying(other.Value, "Hi."))
	answer := b.answers.Next()
	require.Equal(t, "N4 is free.", answer.Value.Content)
	require.Equal(t, "s1", answer.Key)
	require.True(t, strings.HasPrefix(answer.ID(), call.ID()[:32]), "ids begin with the turn's")
	require.Equal(t, "Hi.", b.answers.Next().Value.Content)
	require.Zero(t, b.enriched.Len(), "our own tool message is not enriched again")
	require.NoError(t, b.Replay())

	state, ok := b.rows.Get("s1")
	require.True(t, ok)
	require.Nil(t, state.Turn)
	require.Equal(t, uint32(4), state.HistoryLength)
}

func TestStepsAndCallsCarryTheirDeadline(t *testing.T) {
	b := start(t, turn.Config{ThinkTimeout: time.Minute, ToolTimeout: time.Second})
	b.messages.Pipe("s1", say("s1", "hi"))
	asked := b.enriched.Next()
	require.Equal(t, "1790000060000", string(asked.Headers["turntable.deadline"]))
	require.NotEmpty(t, asked.ID())
	b.responses.Pipe("s1", calling(asked.Value, "t1"))
	call := b.calls.Next()
	require.Equal(t, "1790000001000", string(call.Headers["turntable.deadline"]))
	b.Advance(time.Second)
	require.NotContains(t, b.looped.Next().Headers, "turntable.deadline")
	b.complete.Drain()
	b.enriched.Drain()
}

func TestDeadlinesFire(t *testing.T) {
	b := start(t, turn.Config{ThinkTimeout: time.Minute, ToolTimeout: time.Second})
	b.messages.Pipe("s1", say("s1", "hi"))
	b.responses.Pipe("s1", calling(b.enriched.Next().Value, "t1"))
	b.calls.Drain()
	b.Advance(time.Second)
	require.Equal(t, "error", *b.complete.Next().Value.Results[0].Status)
	b.looped.Drain()
	b.enriched.Drain()
	require.Zero(t, b.answers.Len())
	b.Advance(time.Minute)
	require.Equal(t, topics.CodeThinkTimeout, b.answers.Next().Value.Error.Code)
	b.Advance(25 * time.Hour)
	_, ok := b.rows.Get("s1")
	require.False(t, ok, "nothing is left of a session without a conversation")
}

func TestHeldResultsAreDeadLetteredWithTheirCoordinates(t *testing.T) {
	b := start(t, turn.Config{})
	b.messages.Pipe("s1", say("s1", "hi"))
	asked := b.enriched.Next()
	early := `{"tool_use_id":"t9", "result":{}}`
	offset := processortest.InRaw(b.Driver, b.topics.ToolUseResult.Name()).PipeRaw("s1", []byte(early),
		processortest.WithHeaders(goka.Headers{"trace": []byte("abc")}))
	require.Zero(t, b.letters.Len())
	b.responses.Pipe("s1", saying(asked.Value, "done"))
	b.answers.Drain()
	l := b.letters.Next()
	require.Equal(t, early, string(l.Raw))
	require.Equal(t, "s1", l.Key)
	require.Equal(t, b.topics.ToolUseResult.Name(), string(l.Headers[topics.HeaderErrorSourceTopic]))
	require.Equal(t, "0", string(l.Headers[topics.HeaderErrorSourcePartition]))
	require.Zero(t, offset)
	require.Equal(t, "abc", string(l.Headers["trace"]))
	require.Contains(t, string(l.Headers[topics.HeaderErrorReason]), "claimed")
}

func TestBadRecordsOnEveryInputDoNotStopTheGroup(t *testing.T) {
	b := start(t, turn.Config{})
	inputs := []string{
		"message-input", "think-request-response", "think-dlq", "tool-use-result", "tool-use-dlq", "reply-to",
		"session-control",
	}
	bad := []string{"", "{", "[]", `"x"`, "17", "\xff", strings.Repeat("[", 10000), strings.Repeat(`{"a":`, 20000)}
	for _, topic := range inputs {
		in := processortest.InRaw(b.Driver, "quay-"+topic)
		for _, raw := range bad {
			in.PipeRaw("s1", []byte(raw))
		}
		in.PipeRaw("", []byte(`{}`))
		in.PipeRaw("s\x00", []byte(`{}`))
	}
	require.Equal(t, len(inputs)*(len(bad)+2), len(b.letters.Drain()))
	require.Empty(t, b.rows.Keys())
	b.messages.Pipe("s1", say("s1", "hi"))
	require.Equal(t, 1, len(b.enriched.Drain()))
}

func TestDefectIsAnsweredAndDoesNotStopTheGroup(t *testing.T) {
	b := start(t, turn.Config{})
	broken := &turnrow.State{Version: 1, Turn: &turnrow.OpenTurn{}} // no row has a turn without its message
	b.rows.Put("s1", broken)
	m := say("s1", "hi")
	m.Metadata = topics.Raw(`{"request_id":"r1"}`)
	b.messages.Pipe("s1", m)
	answer := b.answers.Next()
	require.Equal(t, topics.CodeInternal, answer.Value.Error.Code)
	require.Equal(t, "r1", *answer.Value.RequestID)
	l := b.letters.Next()
	require.Contains(t, string(l.Headers[topics.HeaderErrorReason]), "panic")
	state, _ := b.rows.Get("s1")
	require.NotNil(t, state.Turn, "the row stays as it was")

	b.messages.Pipe("s2", say("s2", "hi"))
	require.Equal(t, 1, len(b.enriched.Drain()), "others go on")
}

func TestDefectAtADeadlineEndsTheTurn(t *testing.T) {
	b := start(t, turn.Config{})
	due := b.Now().Add(time.Second).UnixMilli()
	b.rows.Put("s1", &turnrow.State{
		Version: 1, DeadlineMs: due, History: []byte(`[]`),
		Turn:    &turnrow.OpenTurn{DeadlineMs: due}, // no message: ending it panics
		Waiting: []*turnrow.Accepted{{TurnId: "waits", Input: []byte(`{}`)}},
	})
	b.Advance(2 * time.Second)
	answer := b.answers.Next()
	require.Equal(t, topics.CodeInternal, answer.Value.Error.Code)
	require.Equal(t, "waits/0/output/0", answer.ID())
	state, _ := b.rows.Get("s1")
	require.Nil(t, state.Turn)
	require.NotNil(t, state.History)
}

// A dead letter is kept longer than the token's route and is read by people, so it must not contain the token.
func TestUnusableRouteIsDeadLetteredWithoutItsToken(t *testing.T) {
	b := start(t, turn.Config{})
	routes := processortest.In(b.Driver, b.topics.ReplyTo)
	routes.PipeRaw("s1", []byte(`{"bearerToken":"s3cret","callbackService":"`+strings.Repeat("x", 80<<10)+`"}`))
	routes.PipeRaw("s1", []byte(`{"callbackService":"harbor","bearerToken":"s3cret"`)) // unreadable
	letters := b.letters.Drain()
	require.Len(t, letters, 2)
	for _, l := range letters {
		require.Empty(t, l.Value)
		require.Equal(t, "s1", l.Key)
		for _, header := range l.Headers {
			require.NotContains(t, string(header), "s3cret")
		}
	}
}
