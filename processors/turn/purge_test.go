package turn_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// talk is a session with a long history in parts and an open turn, whose row the test then damages.
func talk(t *testing.T) (b *bench, raw *processortest.GroupTable[[]byte], purge func()) {
	b = start(t, turn.Config{})
	raw = processortest.Table(b.Driver, b.topics.Group(), codec.Bytes())
	b.messages.Pipe("s1", say("s1", strings.Repeat("long ", 2000)))
	b.responses.Pipe("s1", saying(b.enriched.Next().Value, strings.Repeat("answer ", 2000)))
	b.answers.Next()
	b.messages.Pipe("s1", say("s1", strings.Repeat("more ", 2000)))
	b.enriched.Next()
	require.NotEmpty(t, storedParts(raw))
	controls := processortest.In(b.Driver, b.topics.SessionControl)
	return b, raw, func() { controls.Pipe("s1", topics.Control{Action: topics.ActionPurge}) }
}

// storedParts returns the numbers of the parts of s1 in the table.
func storedParts(raw *processortest.GroupTable[[]byte]) (numbers []uint32) {
	const first = 1_790_000_000 // the clock's time in seconds
	for n := uint32(first); n < first+100; n++ {
		if raw.Part("s1", n) != nil {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

func TestPurgeErasesADamagedRow(t *testing.T) {
	damaged := func(change func(*turnrow.State)) func(*testing.T, []byte, *processortest.GroupTable[[]byte]) []byte {
		return func(t *testing.T, row []byte, _ *processortest.GroupTable[[]byte]) []byte {
			s, err := turnrow.Table.Unmarshal(row)
			require.NoError(t, err)
			change(s)
			row, err = turnrow.Table.Marshal(s)
			require.NoError(t, err)
			return row
		}
	}
	for name, c := range map[string]struct {
		damage  func(t *testing.T, row []byte, raw *processortest.GroupTable[[]byte]) []byte
		answers int // the outputs of messages that can still be read
	}{
		"no Protobuf": {func(*testing.T, []byte, *processortest.GroupTable[[]byte]) []byte {
			return []byte("\xff\xff no row")
		}, 0},
		"truncated": {func(_ *testing.T, row []byte, _ *processortest.GroupTable[[]byte]) []byte {
			return row[:len(row)-3]
		}, 0},
		"turn without its message": {damaged(func(s *turnrow.State) { s.Turn.Message = nil }), 0},
		"a part is missing": {damaged(func(s *turnrow.State) {
			s.CausesParts = append(s.CausesParts, &turnrow.Part{Number: 5, Length: 24})
		}), 1},
		"lists of no whole entries": {damaged(func(s *turnrow.State) {
			s.Causes, s.Calls, s.Steps = s.Causes[:len(s.Causes)-1], []byte("x"), []byte("x")
			s.CausesParts = append(s.CausesParts, &turnrow.Part{Number: 5, Length: 24})
		}), 1},
		"result that is not there": {damaged(func(s *turnrow.State) {
			id := "t1"
			s.Turn.Calls = []*turnrow.Call{{ToolUseId: &id, ResultAt: 7, ResultLength: 9}}
		}), 1},
	} {
		t.Run(name, func(t *testing.T) {
			b, raw, purge := talk(t)
			raw.Put("s1", c.damage(t, raw.Raw("s1"), raw))
			raw.Put(runtimeapi.PartKey("s1", 1_790_000_099), []byte("a part that a crash left"))
			raw.Put(runtimeapi.PartKey("s10", 1_790_000_000), []byte("of another session"))
			purge()
			require.Empty(t, b.letters.Drain(), "the purge itself is not dead-lettered")
			require.Empty(t, storedParts(raw))
			require.NotNil(t, raw.Raw(runtimeapi.PartKey("s10", 1_790_000_000)))
			require.NotContains(t, string(raw.Raw("s1")), "long")
			require.NotContains(t, string(raw.Raw("s1")), "more")
			answers := b.answers.Drain()
			require.Len(t, answers, c.answers)
			for _, a := range answers {
				require.Equal(t, topics.CodeCancelled, a.Value.Error.Code)
			}

			b.messages.Pipe("s1", say("s1", "hi"))
			asked := b.enriched.Next()
			require.Equal(t, "[]", string(asked.Value.History), "it is a new session")
			b.responses.Pipe("s1", saying(asked.Value, "hello"))
			require.Equal(t, "hello", b.answers.Next().Value.Content)
			purge()
			require.Empty(t, b.letters.Drain())
		})
	}
}

// A row whose turn cannot be ended by its rules still ends its messages, and a repeat of a record from before the purge does not
// start the session again.
func TestPurgeOfADamagedRowRemembersRecords(t *testing.T) {
	b, raw, purge := talk(t)
	s, err := turnrow.Table.Unmarshal(raw.Raw("s1"))
	require.NoError(t, err)
	s.Turn.Calls = []*turnrow.Call{{ToolUseId: proto.String("t1"), ResultAt: 7, ResultLength: 9}}
	row, err := turnrow.Table.Marshal(s)
	require.NoError(t, err)
	raw.Put("s1", row)
	purge()
	require.Len(t, b.answers.Drain(), 1)
	b.messages.PipeAt(1)
	require.Empty(t, b.enriched.Drain())
	require.Empty(t, b.answers.Drain())
	purge()
	require.Empty(t, b.letters.Drain())
}

func TestPurgeDeletesPartsThatNoRowNames(t *testing.T) {
	b, raw, purge := talk(t)
	raw.Put(runtimeapi.PartKey("s1", 1_790_000_099), []byte("a part that a crash left"))
	purge()
	require.Len(t, b.answers.Drain(), 1)
	require.Empty(t, storedParts(raw))
}
