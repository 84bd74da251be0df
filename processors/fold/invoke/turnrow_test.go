package invoke

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/invokerow"
	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/topics"
)

var hourly = tableRules{kept: time.Hour, limit: maxTurnRow}

// stored encodes and decodes a row, as the table does.
func stored(t require.TestingT, row *invokerow.Row) *invokerow.Row {
	if row == nil {
		return nil
	}
	raw, err := invokerow.Table.Marshal(row)
	require.NoError(t, err)
	back, err := invokerow.Table.Unmarshal(raw)
	require.NoError(t, err)
	return back
}

func delta(turn string, offset int64, at time.Time) sighting {
	return sighting{session: "s", turn: turn, partition: 1, offset: offset, at: at}
}

func TestRowIsWrittenWhenATurnBeginsAndEndsAndRarelyBetween(t *testing.T) {
	row, changed := hourly.apply(nil, sighting{session: "s", request: "t", at: noon}, noon)
	require.True(t, changed)
	writes, now := 0, noon
	for i := range int64(10_000) {
		now = noon.Add(time.Duration(i) * 10 * time.Millisecond)
		var next *invokerow.Row
		before := proto.Clone(row)
		if next, changed = hourly.apply(row, delta("t", 100+i, now), now); changed {
			writes++
		}
		require.True(t, proto.Equal(before, row), "the old row is not modified")
		row = stored(t, next)
	}
	require.Equal(t, 1+10_000/spread, writes, "the first one, and one per spread, which is more often than each minute")
	end := delta("t", 20_000, now)
	end.ended = true
	row, changed = hourly.apply(row, end, now)
	require.True(t, changed)
	require.Len(t, row.Turns, 1)
	require.Equal(t, []int64{100, 20_000}, []int64{row.Turns[0].First, row.Turns[0].Last})
	require.True(t, row.Turns[0].Ended)
	batch := delta("t", 7, now)
	batch.end = &turnEnd{
		turn: "t", offset: 7, attempt: 1, seq: 9, state: "failed", reason: "gap", stop: topics.Raw(`"end_turn"`), text: "caf\xc3",
	}
	row, changed = hourly.apply(row, batch, now)
	require.True(t, changed)
	row = stored(t, row)
	require.Equal(t, batch.end, turnOf("s", row.Turns[0]).end)
	repeated := batch
	repeated.end = &turnEnd{turn: "t", offset: 8, attempt: 1, seq: 9, state: "failed"}
	for _, again := range []sighting{delta("t", 100, noon), delta("t", 5_000, now), end, batch, repeated} {
		_, changed = hourly.apply(row, again, now)
		require.False(t, changed, "redelivered: %v", again)
	}
	row, changed = hourly.apply(row, delta("t", 20_001, now), now)
	require.True(t, changed, "the position of a record after the end is exact")
	require.False(t, row.Turns[0].Ended)
}

func TestTurnsLeaveTheirRow(t *testing.T) {
	row, _ := hourly.apply(nil, delta("old", 1, noon), noon)
	row, _ = hourly.apply(row, delta("new", 2, noon.Add(30*time.Minute)), noon.Add(30*time.Minute))
	leaves := noon.Add(time.Hour + time.Minute)
	require.Equal(t, leaves.UnixMilli(), row.DeadlineMs)
	row = hourly.expire("s", row, leaves.Add(-time.Millisecond))
	require.Len(t, row.Turns, 2, "a deadline that fires too early")
	row = hourly.expire("s", row, leaves)
	require.Len(t, row.Turns, 1)
	require.Equal(t, "new", string(row.Turns[0].Id))
	require.Nil(t, hourly.expire("s", row, leaves.Add(30*time.Minute)))
	_, changed := hourly.apply(nil, delta("too old", 1, noon.Add(-2*time.Hour)), noon)
	require.False(t, changed, "the group reads a topic from its beginning")
}

func TestRowIsBounded(t *testing.T) {
	t.Parallel()
	var row *invokerow.Row
	for i := range 1000 {
		row, _ = hourly.apply(row, delta(fmt.Sprint("t-", i), int64(i), noon), noon)
	}
	require.Len(t, row.Turns, sessionTurns)
	require.Equal(t, "t-999", string(row.Turns[sessionTurns-1].Id))

	small := tableRules{kept: time.Hour, limit: 10_000}
	row = nil
	for i := range 100 {
		long := fmt.Sprint(i, strings.Repeat("x", maxIndexed-10))
		row, _ = small.apply(row, sighting{session: "s", request: long, at: noon}, noon)
		require.LessOrEqual(t, proto.Size(row), 10_000)
	}
	require.Greater(t, len(row.Turns), 10)
	require.Regexp(t, "^99x", string(row.Turns[len(row.Turns)-1].Request))
}

func TestRowKeepsFieldsOfNewerBuilds(t *testing.T) {
	unknown := []byte{0xf8, 0x06, 0x07} // field 111
	row, _ := hourly.apply(nil, delta("t", 1, noon), noon)
	row.ProtoReflect().SetUnknown(unknown)
	row.Turns[0].ProtoReflect().SetUnknown(unknown)
	row, changed := hourly.apply(stored(t, row), delta("u", 2, noon), noon)
	require.True(t, changed)
	require.Equal(t, unknown, []byte(row.ProtoReflect().GetUnknown()))
	require.Equal(t, unknown, []byte(row.Turns[0].ProtoReflect().GetUnknown()))
	_, err := invokerow.Table.Unmarshal([]byte{0x08, 0x02})
	require.ErrorIs(t, err, rows.ErrVersion)
}

func TestTextsThatAreNotUTF8AreStored(t *testing.T) {
	failed := &topics.Output{Error: &topics.OutputError{Code: "busy", Message: "caf\xc3"}} // cut in a character
	row, changed := hourly.apply(nil, sighting{session: "s", request: "r\xff", at: noon, failed: failed}, noon)
	require.True(t, changed)
	known := turnOf("s", stored(t, row).Turns[0])
	require.Equal(t, "r\xff", known.request)
	require.Equal(t, failed.Error, known.failed.Error)
}

// history is the records of one partition, of one session, in the order of their offsets.
func history(t *rapid.T) []sighting {
	var list []sighting
	now := noon.Add(-50 * time.Minute)
	failed := &topics.Output{RequestID: new(string), Error: &topics.OutputError{Code: "busy"}}
	for i := range int64(rapid.IntRange(1, 60).Draw(t, "records")) {
		now = now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second)
		if now.After(noon) {
			now = noon
		}
		name := fmt.Sprint("t-", rapid.IntRange(0, 3).Draw(t, "turn"))
		s := sighting{session: "s", partition: 1, at: now, offset: i * int64(rapid.IntRange(1, spread/4).Draw(t, "apart"))}
		if n := len(list); n > 0 {
			s.offset = list[n-1].offset + 1 + s.offset%spread
		}
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			s.request = name
		case 1:
			s.request, s.failed = name, failed
		case 2:
			s.turn, s.request = name, "request of "+name
		case 3:
			s.turn, s.ended = name, true
		default:
			s.turn = name
		}
		list = append(list, s)
	}
	return list
}

// However the records are divided between the row and the topics, and whichever are redelivered after a crash, the index that
// is loaded from both finds the same turns as one that is loaded from all records.
func TestIndexFromRowAndTailEqualsIndexFromAllRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := history(t)
		cut := rapid.IntRange(0, len(records)).Draw(t, "covered")
		crash := rapid.IntRange(0, cut).Draw(t, "crash")
		again := rapid.IntRange(0, crash).Draw(t, "again")
		var row *invokerow.Row
		for _, s := range append(append([]sighting{}, records[:crash]...), records[again:cut]...) {
			row, _ = hourly.apply(row, s, s.at)
			row = stored(t, row)
		}
		end := records[len(records)-1].offset + 1
		covered := int64(0)
		if cut > 0 {
			covered = records[cut-1].offset + 1
		}
		full, loaded := newTurnIndex(time.Hour, sessionTurns, 1000), newTurnIndex(time.Hour, sessionTurns, 1000)
		for _, s := range records {
			full.add(s, noon)
		}
		for _, known := range row.GetTurns() {
			for _, s := range sightingsOf(turnOf("s", known), refreshOf(time.Hour), map[int32]int64{1: covered}, map[int32]int64{1: end}) {
				loaded.add(s, noon)
			}
		}
		for _, s := range records[cut:] {
			loaded.add(s, noon)
		}
		require.Len(t, loaded.sessions["s"], len(full.sessions["s"]))
		for turn := range 4 {
			for _, id := range []string{fmt.Sprint("t-", turn), fmt.Sprint("request of t-", turn)} {
				want, have := full.find("s", id), loaded.find("s", id)
				if want == nil {
					require.Nil(t, have, id)
					continue
				}
				require.NotNil(t, have, id)
				require.Equal(t, want.turn, have.turn)
				require.Equal(t, want.request, have.request)
				require.Equal(t, want.began.UnixMilli(), have.began.UnixMilli())
				require.Equal(t, want.failed == nil, have.failed == nil)
				require.False(t, have.gone)
				require.Equal(t, want.first, have.first, id)
				require.GreaterOrEqual(t, have.last, want.last, "no record of the turn is left out")
				if have.last > want.last {
					require.Less(t, have.last, covered, "live records begin where the section ends")
					require.LessOrEqual(t, have.last-want.last, int64(spread))
				}
				require.False(t, have.touched.Before(want.touched), id)
			}
		}
	})
}

func TestTurnsOfAnEarlierTopicAreGone(t *testing.T) {
	row, _ := hourly.apply(nil, delta("t", 100, noon), noon)
	row, _ = hourly.apply(row, delta("later", 5, noon), noon)
	x := newTurnIndex(time.Hour, sessionTurns, 1000)
	for _, known := range row.Turns {
		for _, s := range sightingsOf(turnOf("s", known), time.Minute, map[int32]int64{}, map[int32]int64{1: 10}) {
			x.add(s, noon)
		}
	}
	require.True(t, x.find("s", "t").gone)
	require.Equal(t, int64(5), x.find("s", "later").last)
	x.add(delta("t", 10, noon), noon)
	require.False(t, x.find("s", "t").gone, "a new record of the turn")
	require.Equal(t, int64(10), x.find("s", "t").first)
}
