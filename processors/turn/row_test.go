package turn

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
)

func TestUnknownFieldsOfARowSurvive(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("one"), saying("first"))
	p.row = protowire.AppendTag(p.row, 900, protowire.BytesType)
	p.row = protowire.AppendString(p.row, "from a newer build")
	asked := p.ask("two")
	p.row = protowire.AppendVarint(protowire.AppendTag(p.row, 901, protowire.VarintType), 7)
	p.respond(asked, calling("t1"))
	p.result("t1", "x")
	require.Contains(t, string(p.row), "from a newer build")
	require.Equal(t, 2, strings.Count(string(p.state().ProtoReflect().GetUnknown()), "\x07")+
		strings.Count(string(p.state().ProtoReflect().GetUnknown()), "newer"))
}

func TestRowOfANewerFormatIsRefusedByName(t *testing.T) {
	raw, err := proto.Marshal(&turnrow.State{Version: rowBound + 1})
	require.NoError(t, err)
	_, err = turnrow.Table.Unmarshal(raw)
	require.ErrorIs(t, err, rows.ErrVersion)
	require.ErrorContains(t, err, "12")
}

func TestDeadlineIsReadWithoutDecodingTheRow(t *testing.T) {
	raw, err := turnrow.Table.Marshal(&turnrow.State{Version: 1, DeadlineMs: 77, History: []byte("not read")})
	require.NoError(t, err)
	ms, ok := encodedRows{}.Deadline(raw)
	require.True(t, ok)
	require.Equal(t, int64(77), ms)
	require.Zero(t, testing.AllocsPerRun(10, func() { encodedRows{}.Deadline(raw) }))

	for _, none := range [][]byte{nil, {}, {0xff}, {0x10}, {0x12, 0x7f}, []byte("garbage"), {0x08, 0x01}} {
		_, ok := encodedRows{}.Deadline(none)
		require.False(t, ok)
	}
	// Another writer may put the field last.
	late := protowire.AppendVarint(protowire.AppendTag(protowire.AppendBytes(
		protowire.AppendTag(nil, 3, protowire.BytesType), []byte("[]")), 2, protowire.VarintType), 5)
	ms, ok = encodedRows{}.Deadline(late)
	require.True(t, ok)
	require.Equal(t, int64(5), ms)
}

func TestTableCodecYieldsStates(t *testing.T) {
	raw, err := turnrow.Table.Codec().Encode(&turnrow.State{Version: 1, HistoryLength: 3})
	require.NoError(t, err)
	v, err := turnrow.Table.Codec().Decode(raw)
	require.NoError(t, err)
	s, err := stateOf(v)
	require.NoError(t, err)
	require.Equal(t, uint32(3), s.HistoryLength)

	v, err = turnrow.Table.Codec().Decode([]byte{0xff})
	require.NoError(t, err, "Goka is never told")
	_, err = stateOf(v)
	require.Error(t, err)
	s, err = stateOf(nil)
	require.NoError(t, err)
	require.Nil(t, s)
	_, err = stateOf(7)
	require.ErrorIs(t, err, codec.ErrType)
	_, err = turnrow.Table.Codec().Encode(7)
	require.ErrorIs(t, err, codec.ErrType)
}

func TestMemoryIsBoundedInTimeAndCount(t *testing.T) {
	var memory []byte
	now := time.UnixMilli(1000)
	for i := range 10 {
		memory = remember(memory, digests.Of(ofCall, string(rune('a'+i))), now, time.Second, 3)
	}
	require.Len(t, memory, 3*memorySize)
	require.False(t, remembers(memory, digests.Of(ofCall, "a"), now, time.Second))
	require.True(t, remembers(memory, digests.Of(ofCall, "j"), now, time.Second))
	require.False(t, remembers(memory, digests.Of(ofResult, "j"), now, time.Second), "domains are apart")
	alike := digests.Of(ofCall, "j")
	alike[digestSize-1]++
	require.False(t, remembers(memory, alike, now, time.Second), "all of a digest counts")
	later := now.Add(time.Second)
	require.False(t, remembers(memory, digests.Of(ofCall, "j"), later, time.Second))
	require.Len(t, remember(memory, digests.Of(ofCall, "k"), later, time.Second, 3), memorySize)
}

func TestRowOverALoweredBudgetIsLeftAlone(t *testing.T) {
	p := newPlay(t)
	p.fillForGood(0, 0)
	before := p.row
	p.rules.RowLimit = 200 << 10
	out := p.send("message-input", message("two"))
	require.Equal(t, "too_large", string(the[answered](t, out).Error.Code))
	require.Equal(t, []string{reasonRowSize}, out.letters())
	require.Equal(t, before, p.row)
}

func TestMemoriesAreDroppedBeforeAMessageIsRejected(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("one"), saying("x"))
	s := p.state()
	for i := range 1000 {
		s.Causes = remember(s.Causes, digests.Of(ofCause, string(rune(i))), p.now, time.Hour, 1000)
	}
	p.row, _ = turnrow.Table.Marshal(s)
	p.rules.RowLimit = len(p.row)
	require.Empty(t, p.send("message-input", message("two")).letters())
	require.NotEmpty(t, p.state().Causes)
}

func TestDescribeNamesIDsAndSizesOnly(t *testing.T) {
	p := newPlay(t)
	require.Equal(t, "no state\n", describe(nil))
	p.respond(p.ask("secret one"), saying("secret answer"))
	p.send("reply-to", namedRoute("r9"))
	p.send("reply-to", `{"bearerToken":"secret"}`)
	asked := the[enriched](t, p.send("message-input", requestMessage("secret two", "r2")))
	p.send("message-input", message("secret three"))
	p.result("t8", "secret")
	p.respond(asked, calling("t1", "t2"))
	p.result("t1", "secret result")
	text := describe(p.state())
	require.NotContains(t, text, "secret")
	for _, want := range []string{
		"history: 2 messages", "step 1 waits for tools", `request "r2"`, `call 0: look "t1": success`,
		`call 1: look "t2": open`, `held: "t8"`, "waiting 1: turn", `route (request "r9")`, "next deadline: 2026-",
	} {
		require.Contains(t, text, want)
	}
}
