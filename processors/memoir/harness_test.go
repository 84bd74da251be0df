package memoir

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/memoirrow"
	"github.com/turntable-streams/turntable/topics"
)

// tb is implemented by *testing.T and *rapid.T.
type tb interface {
	require.TestingT
	Helper()
}

// harness applies events to the row of one user. The row is encoded and decoded between two events, as in a broker.
type harness struct {
	tb     tb
	config Config
	now    time.Time
	row    []byte
	stored map[uint32][]byte // the parts of the row
	inline bool              // there are no parts
	offset int64
}

const user = "mira"

func newHarness(t tb, change ...func(*Config)) *harness {
	p := &harness{tb: t, now: time.UnixMilli(1_790_000_000_000).UTC(), stored: map[uint32][]byte{}}
	require.NoError(t, p.config.complete())
	for _, f := range change {
		f(&p.config)
	}
	return p
}

// Part implements partReader.
func (p *harness) Part(n uint32) ([]byte, error) { return p.stored[n], nil }

func (p *harness) record(cause string, value []byte) *record {
	p.offset++
	return &record{User: user, Cause: cause, Offset: p.offset, Value: value}
}

func conversation(text string) topics.Raw {
	return topics.Raw(fmt.Sprintf(`[{"role":"user","content":%q}]`, text))
}

// ended returns the end of a session.
func (p *harness) ended(end string) sessionEnded {
	p.tb.Helper()
	s := topics.MemoirSnapshot{
		SessionID: &end, ThinkResponse: &topics.ThinkResponse{PreviousMessages: conversation(end)}, Messages: conversation(end),
	}
	raw, err := snapshots().Marshal(s)
	require.NoError(p.tb, err)
	d := snapshots().Unmarshal(raw)
	require.NoError(p.tb, d.Err)
	return sessionEnded{p.record(passID(end, 1), raw), d.Value}
}

// answer returns a worker's memory for a snapshot.
func (p *harness) answer(s snapshotSent, text string) memoryWritten {
	return memoryWritten{p.record(s.ID+"/memory", []byte(text)), text, strconv.FormatUint(s.Version, 10)}
}

// foreign returns a memory of an updater that knows no versions.
func (p *harness) foreign(text string) memoryWritten {
	return memoryWritten{p.record(fmt.Sprint("record ", p.offset), []byte(text)), text, ""}
}

func (p *harness) edit(text string) memoryWritten {
	return memoryWritten{p.record(fmt.Sprint("edit ", p.offset), []byte(text)), text, topics.MemoirEdit}
}

func (p *harness) tombstone() memoryWritten {
	return memoryWritten{p.record(fmt.Sprint("tombstone ", p.offset), nil), "", ""}
}

func (p *harness) failure(s snapshotSent) passFailed {
	raw, err := snapshots().Marshal(s.Snapshot)
	require.NoError(p.tb, err)
	return passFailed{p.record(s.ID, raw)}
}

// handle applies an event, checks the row and returns the effects.
func (p *harness) handle(e event) []effect {
	p.tb.Helper()
	var parts partReader
	if !p.inline {
		parts = p
	}
	had := p.row != nil
	out, err := apply(p.state(), e, parts, p.now, p.config)
	require.NoError(p.tb, err)
	if !out.Changed {
		require.Empty(p.tb, out.New, "parts are written with the row")
		require.Empty(p.tb, out.Unused)
		return out.Effects
	}
	for _, n := range out.New {
		require.NotContains(p.tb, p.stored, n.Number, "a part is written once")
		p.stored[n.Number] = n.Value
	}
	for _, n := range out.Unused {
		delete(p.stored, n)
	}
	if out.State == nil {
		require.True(p.tb, had, "only an existing row is deleted")
		p.row = nil
		require.Empty(p.tb, p.stored)
		return out.Effects
	}
	p.row, err = memoirrow.Table.Marshal(out.State)
	require.NoError(p.tb, err)
	require.LessOrEqual(p.tb, len(p.row), p.config.RecordLimit-rowMargin)
	p.checkRow(e)
	return out.Effects
}

func (p *harness) checkRow(e event) {
	p.tb.Helper()
	s := p.state()
	var open, answered []*memoirrow.Pending
	named := map[uint32]bool{}
	for _, d := range s.Pending {
		if isOpen(d) {
			open = append(open, d)
		}
		if d.Answered {
			answered = append(answered, d)
		}
		if d.Part != 0 {
			named[d.Part] = true
			require.Contains(p.tb, p.stored, d.Part, "the row has its parts")
		}
	}
	for _, d := range s.Settled {
		named[d.Part] = true
		require.Contains(p.tb, p.stored, d.Part, "the row has its parts")
		require.True(p.tb, d.Sent && d.Answered)
	}
	require.Len(p.tb, p.stored, len(named), "no part is left")
	for i, d := range open {
		for _, earlier := range open[:i] {
			require.True(p.tb, d.Pass == 1 || d.Base != earlier.Base, "a further pass is sent while no other one of its version is open")
		}
	}
	if len(open) == 0 && s.Abandoned == 0 {
		require.Empty(p.tb, answered, "nothing is left to wait for")
		require.False(p.tb, s.Unsure)
	}
	at, ok := rows.Deadline(p.row)
	require.Equal(p.tb, s.Memory == "" || len(s.Pending)+len(s.Settled) > 0 || s.Abandoned > 0, ok, "a row that waits for something has a deadline")
	if _, timer := e.(deadlineCame); timer && ok {
		require.Greater(p.tb, at, p.now.UnixMilli(), "the next deadline is in the future")
	}
}

// state returns the row, nil if there is none.
func (p *harness) state() *memoirrow.State {
	p.tb.Helper()
	if p.row == nil {
		return nil
	}
	s, err := memoirrow.Table.Unmarshal(p.row)
	require.NoError(p.tb, err)
	return s
}

// wait moves the clock to the earliest deadline of the row and applies it.
func (p *harness) wait() []effect {
	p.tb.Helper()
	ms, ok := rows.Deadline(p.row)
	require.True(p.tb, ok, "the row has a deadline")
	p.now = time.UnixMilli(max(ms, p.now.UnixMilli())).UTC()
	return p.handle(deadlineCame{user})
}

// copyTo gives another harness the row as it is now.
func (p *harness) copyTo(other *harness) {
	other.row, other.stored = p.row, maps.Clone(p.stored)
}

// sent returns the only snapshot among effects.
func sent(t tb, effects []effect) snapshotSent {
	t.Helper()
	require.Len(t, effects, 1)
	s, ok := effects[0].(snapshotSent)
	require.True(t, ok, "%T", effects[0])
	return s
}
