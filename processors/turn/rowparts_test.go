package turn

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
)

// A table of one row and its parts.
type parted struct {
	row    []byte
	parts  map[uint32][]byte
	cached *fullValues // of the row, if it is cached
}

// change loads the row, changes it, and writes it as the binding does.
func (p *parted) change(t require.TestingT, withHistory bool, now time.Time, change func(*turnrow.State)) (written int) {
	s := &turnrow.State{}
	require.NoError(t, proto.Unmarshal(p.row, s))
	load := openLayout
	if withHistory {
		load = loadAll
	}
	l := load(t, s, table{parts: p.parts}, p.cached)
	change(s)
	write, unused, full := l.divide(s, now.UnixMilli())
	p.cached = &full
	for _, n := range write {
		require.NotContains(t, p.parts, n.Number, "a part is written once")
		p.parts[n.Number] = bytes.Clone(n.Value)
		written += len(n.Value)
	}
	for _, n := range unused {
		require.Contains(t, p.parts, n)
		delete(p.parts, n)
	}
	named := 0
	for _, f := range stateLargeFields(s) {
		if f.absent() {
			continue
		}
		named += len(*f.parts)
		require.LessOrEqual(t, len(*f.inline), f.limit)
		require.LessOrEqual(t, len(*f.parts), 12)
	}
	require.Len(t, p.parts, named, "the row names every part and no other")
	require.Equal(t, len(s.StepsParts) > 0, s.Version == rowSteps)
	require.LessOrEqual(t, s.Version, uint32(rowSteps))
	require.LessOrEqual(t, lengthOf(s.StepsParts)+len(s.Steps), 2*maxSteps*stepSize)
	var err error
	p.row, err = turnrow.Table.Marshal(s)
	require.NoError(t, err)
	return written + len(p.row)
}

func (p *parted) whole(t require.TestingT) *turnrow.State {
	s := &turnrow.State{}
	require.NoError(t, proto.Unmarshal(p.row, s))
	loadAll(t, s, table{parts: p.parts}, nil)
	return s
}

// joined is a field as its parts and the row have it.
func (p *parted) joined(t require.TestingT, i int) (whole []byte) {
	s := &turnrow.State{}
	require.NoError(t, proto.Unmarshal(p.row, s))
	f := stateLargeFields(s)[i]
	for _, part := range *f.parts {
		whole = append(whole, p.parts[part.Number][:part.Length]...)
	}
	return append(whole, *f.inline...)
}

// Whatever becomes of the big fields of a row, they come together again: the history as it was, a memory with what it
// remembers, and at most what it had dropped before.
func TestFieldsDividedIntoPartsAreReadBackUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &parted{parts: map[uint32][]byte{}}
		want := &turnrow.State{History: []byte("[]")}
		now := time.UnixMilli(1_790_000_000_000)
		n := 0
		p.change(t, true, now, func(s *turnrow.State) { s.History = bytes.Clone(want.History) })
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				size := rapid.SampledFrom([]int{1, 300, 3000, 30_000}).Draw(t, "size")
				more := "," + strings.Repeat(string(rune('a'+n%26)), size) + "]"
				n++
				want.History = append(bytes.Clone(want.History[:len(want.History)-1]), more...)
				p.change(t, true, now, func(s *turnrow.State) { s.History = bytes.Clone(want.History) })
			},
			"shorten": func(t *rapid.T) {
				end := rapid.IntRange(1, len(want.History)-1).Draw(t, "end")
				want.History = append(bytes.Clone(want.History[:end]), ']')
				p.change(t, true, now, func(s *turnrow.State) { s.History = bytes.Clone(want.History) })
			},
			"replace": func(t *rapid.T) {
				want.History = []byte("[" + strings.Repeat("z", rapid.IntRange(0, 10_000).Draw(t, "size")) + "]")
				p.change(t, true, now, func(s *turnrow.State) { s.History = bytes.Clone(want.History) })
			},
			"remember": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 120).Draw(t, "seconds")) * time.Second)
				withHistory := rapid.Bool().Draw(t, "with history")
				for range rapid.IntRange(1, 40).Draw(t, "count") {
					n++
					d := digests.Of(ofCause, string(rune(n)))
					want.Causes = remember(want.Causes, d, now, time.Hour, 300)
					p.change(t, withHistory, now, func(s *turnrow.State) { s.Causes = remember(s.Causes, d, now, time.Hour, 300) })
				}
			},
			"close steps": func(t *rapid.T) {
				withHistory := rapid.Bool().Draw(t, "with history")
				for range rapid.IntRange(1, 80).Draw(t, "count") {
					n++
					d := digests.Of(ofEnd, string(rune('a'+n%rapid.SampledFrom([]int{1, 3, 1000}).Draw(t, "kinds"))))
					asked := func() *turnrow.OpenTurn {
						return &turnrow.OpenTurn{Input: bytes.Clone(d[:]), InputHistoryLength: uint32(n % 2)}
					}
					last := &transition{session: session{row: &turnrow.State{Steps: want.Steps, Turn: asked()}}}
					last.rememberStep()
					want.Steps = last.row.Steps
					p.change(t, withHistory, now, func(s *turnrow.State) {
						s.Turn = asked()
						(&transition{session: session{row: s}}).rememberStep()
						s.Turn = nil
					})
				}
			},
			"forget": func(t *rapid.T) {
				want.Causes = forgetHalf(want.Causes, 0)
				p.change(t, false, now, func(s *turnrow.State) { s.Causes = bytes.Clone(want.Causes) })
			},
			"made anew": func(t *rapid.T) {
				want.History, want.Causes, want.Steps = []byte("[]"), nil, nil
				p.change(t, rapid.Bool().Draw(t, "with history"), now, func(s *turnrow.State) {
					proto.Reset(s)
					s.History = bytes.Clone(want.History)
				})
			},
			"lose what was kept": func(*rapid.T) { p.cached = nil },
			"": func(t *rapid.T) {
				got := p.whole(t)
				require.Equal(t, string(want.History), string(got.History))
				require.True(t, bytes.HasSuffix(got.Causes, want.Causes))
				require.Equal(t, string(want.Steps), string(got.Steps), "the last steps and no others")
				require.Zero(t, len(got.Causes)%memorySize)
				require.LessOrEqual(t, len(got.Causes), 3*300*memorySize)
				if p.cached != nil {
					require.Equal(t, string(got.Causes), string(p.cached[causes]), "kept is what would be read")
					require.Equal(t, string(p.joined(t, steps)), string(p.cached[steps]), "kept is what would be read")
				}
			},
		})
	})
}

// What a turn writes is small beside the history it adds to, and does not grow with it.
func TestHistoryIsNotWrittenWithEveryAnswer(t *testing.T) {
	p := &parted{parts: map[uint32][]byte{}}
	now := time.UnixMilli(1_790_000_000_000)
	history := "[" + strings.Repeat("x", 100<<10) + "]"
	p.change(t, true, now, func(s *turnrow.State) { s.History = []byte(history) })
	written := 0
	const turns = 200
	for range turns {
		history = history[:len(history)-1] + "," + strings.Repeat("y", 500) + "]"
		written += p.change(t, true, now, func(s *turnrow.State) { s.History = []byte(history) })
	}
	require.Less(t, written/turns, 6<<10, "of a history of 100 to 200 KB")
	require.Equal(t, history, string(p.whole(t).History))
}

// A model that forgets what its last turn added does not cost the history before it.
func TestHistoryWhoseEndChangesKeepsItsParts(t *testing.T) {
	p := &parted{parts: map[uint32][]byte{}}
	now := time.UnixMilli(1_790_000_000_000)
	past := "[" + strings.Repeat("x", 100<<10)
	p.change(t, true, now, func(s *turnrow.State) { s.History = []byte(past + strings.Repeat("y", 2000) + "]") })
	for _, end := range []string{"z", "q", "z"} {
		history := past + strings.Repeat(end, 2000) + "]"
		written := p.change(t, true, now, func(s *turnrow.State) { s.History = []byte(history) })
		require.Less(t, written, 8<<10)
		require.Equal(t, history, string(p.whole(t).History))
	}
	p.change(t, true, now, func(s *turnrow.State) { s.History = []byte(past[:30<<10] + "]") })
	require.Equal(t, past[:30<<10]+"]", string(p.whole(t).History))
}

func TestMissingPartMakesTheRowUnreadable(t *testing.T) {
	p := &parted{parts: map[uint32][]byte{}}
	p.change(t, true, time.UnixMilli(1000), func(s *turnrow.State) { s.History = []byte(strings.Repeat("x", 10_000)) })
	require.Len(t, p.parts, 1)
	clear(p.parts)
	for want, from := range map[error]table{
		errBroken:       {parts: map[uint32][]byte{}},
		rows.ErrVersion: {}, // under a plain goka.NewProcessor
	} {
		s := &turnrow.State{}
		require.NoError(t, proto.Unmarshal(p.row, s))
		require.ErrorIs(t, openLayout(t, s, from, nil).load(s, history), want)
	}
}
