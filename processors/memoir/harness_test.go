package memoir

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/memoirrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

type (
	tb      = machinetest.TB
	effects = machinetest.Effects
)

// harness applies events to the row of one user.
type harness struct {
	machinetest.World[*memoirrow.State, event]
	topics topics.Catalog
	config Config
	inline bool // there are no parts
}

const user = "mira"

func newHarness(t tb, change ...func(*Config)) *harness {
	c, err := topics.For("quay")
	require.NoError(t, err)
	p := &harness{topics: c}
	require.NoError(t, p.config.complete())
	for _, f := range change {
		f(&p.config)
	}
	p.World = machinetest.World[*memoirrow.State, event]{
		TB: t, Table: memoirrow.Table, Due: deadlineCame{}, Named: partsOf, Now: time.UnixMilli(1_790_000_000_000).UTC(),
		RowLimit: p.config.RecordLimit - rowMargin, RecordLimit: p.config.RecordLimit,
		Endless: true, // see checkRow
		Apply: func(row *memoirrow.State, e event) (machine.Outcome[*memoirrow.State], error) {
			parts := readPart(p.Part)
			if p.inline {
				parts = nil
			}
			return apply(row, user, e, parts, p.Now, c, p.config)
		},
	}
	return p
}

func (p *harness) record(id string, value []byte) *machine.Record {
	p.Offset++
	return &machine.Record{ID: id, At: p.Now, Offset: p.Offset, Value: value}
}

func conversation(text string) topics.Raw {
	return topics.Raw(fmt.Sprintf(`[{"role":"user","content":%q}]`, text))
}

// ended returns the end of a session.
func (p *harness) ended(end string) sessionEnded {
	p.TB.Helper()
	s := topics.MemoirSnapshot{
		SessionID: &end, ThinkResponse: &topics.ThinkResponse{PreviousMessages: conversation(end)}, Messages: conversation(end),
	}
	r, s := machinetest.Record(&p.World, p.topics.MemoirSessions, s)
	r.ID = passID(end, 1)
	return sessionEnded{r, s}
}

// answer returns a worker's memory for a snapshot.
func (p *harness) answer(s snapshotSent, text string) memoryWritten {
	return memoryWritten{p.record(s.ID+"/memory", []byte(text)), text, strconv.FormatUint(s.Version, 10)}
}

// foreign returns a memory of an updater that knows no versions.
func (p *harness) foreign(text string) memoryWritten {
	return memoryWritten{p.record(fmt.Sprint("record ", p.Offset), []byte(text)), text, ""}
}

func (p *harness) edit(text string) memoryWritten {
	return memoryWritten{p.record(fmt.Sprint("edit ", p.Offset), []byte(text)), text, topics.MemoirEdit}
}

func (p *harness) tombstone() memoryWritten {
	return memoryWritten{p.record(fmt.Sprint("tombstone ", p.Offset), nil), "", ""}
}

func (p *harness) failure(s snapshotSent) passFailed {
	r, _ := machinetest.Record(&p.World, p.topics.MemoirDLQ, s.Snapshot)
	r.ID = s.ID
	return passFailed{r}
}

// handle applies an event, checks the row and returns the effects, without those on parts.
func (p *harness) handle(e event) effects {
	p.TB.Helper()
	es := p.Handle(e)
	if p.Row != nil {
		p.checkRow()
	}
	return slices.DeleteFunc(es, func(e machine.Effect) bool { return e.Part != 0 })
}

func (p *harness) checkRow() {
	p.TB.Helper()
	s := p.Read()
	var open, answered []*memoirrow.Pending
	for _, d := range s.Pending {
		if isOpen(d) {
			open = append(open, d)
		}
		if d.Answered {
			answered = append(answered, d)
		}
	}
	for _, d := range s.Settled {
		require.True(p.TB, d.Sent && d.Answered)
	}
	for i, d := range open {
		for _, earlier := range open[:i] {
			require.True(p.TB, d.Pass == 1 || d.Base != earlier.Base, "a further pass is sent while no other one of its version is open")
		}
	}
	if len(open) == 0 && s.Abandoned == 0 {
		require.Empty(p.TB, answered, "nothing is left to wait for")
		require.False(p.TB, s.Unsure)
	}
	_, ok := p.Deadline()
	require.Equal(p.TB, s.Memory == "" || len(s.Pending)+len(s.Settled) > 0 || s.Abandoned > 0, ok, "a row that waits for something has a deadline")
}

// wait moves the clock to the earliest deadline of the row and applies it.
func (p *harness) wait() effects {
	p.TB.Helper()
	at, ok := p.Deadline()
	require.True(p.TB, ok, "the row has a deadline")
	if at.After(p.Now) {
		p.Now = at
	}
	return p.handle(deadlineCame{})
}

// snapshotSent is an output on memoir-context-session-end: a pass for a worker.
type snapshotSent struct {
	Key, ID  string
	Version  uint64 // of the memory in Snapshot
	DueMs    int64  // when the pass fails without an answer
	Snapshot topics.MemoirSnapshot
}

func sentOf(t tb, e machine.Effect) snapshotSent {
	t.Helper()
	s, ok := e.Value.(topics.MemoirSnapshot)
	require.True(t, ok, "%+v", e)
	version, err := strconv.ParseUint(string(e.Headers[topics.HeaderMemoirVersion]), 10, 64)
	require.NoError(t, err)
	due, ok := topics.Deadline(e.Headers[topics.HeaderDeadline])
	require.True(t, ok)
	return snapshotSent{e.Key, e.ID, version, due.UnixMilli(), s}
}

// snapshotDead is an ended session that is dead-lettered.
type snapshotDead struct {
	End, Reason string
	Value       []byte
}

func deadOf(t tb, e machine.Effect) snapshotDead {
	t.Helper()
	require.NotNil(t, e.Held)
	end, _, ok := passOf(string(e.Held.Headers[topics.HeaderID]))
	require.True(t, ok)
	return snapshotDead{end, e.Reason, e.Held.Value}
}

// sent returns the only snapshot among effects.
func sent(t tb, es effects) snapshotSent {
	t.Helper()
	require.Len(t, es, 1)
	return sentOf(t, es[0])
}
