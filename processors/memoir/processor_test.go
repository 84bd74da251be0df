package memoir_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows/memoirrow"
	"github.com/turntable-streams/turntable/processors/memoir"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

var noon = time.UnixMilli(1_790_000_000_000).UTC()

// rig runs the group without a broker.
type rig struct {
	*processortest.Driver
	topics   topics.Catalog
	lookups  *processortest.Input[topics.EnrichedMessage]
	ended    *processortest.Input[topics.MemoirSnapshot]
	memories *processortest.Input[string]
	steps    *processortest.Output[topics.EnrichedMessage]
	passes   *processortest.Output[topics.MemoirSnapshot]
	letters  *processortest.Output[[]byte]
	table    *processortest.GroupTable[*memoirrow.State]
}

func newRig(t testing.TB, config memoir.Config) *rig {
	c, err := topics.For("harbor", topics.WithMemoir())
	require.NoError(t, err)
	graph, err := memoir.Graph("harbor", config)
	require.NoError(t, err)
	d := processortest.New(t, noon, graph)
	return &rig{
		Driver: d, topics: c, lookups: processortest.In(d, c.MemoirLookups), ended: processortest.In(d, c.MemoirSessions),
		memories: processortest.In(d, c.MemoirContext), steps: processortest.Out(d, c.EnrichedMessageInput),
		passes:  processortest.Out(d, c.MemoirContextSessionEnd),
		letters: processortest.OutRaw(d, string(c.MemoriesGroup())+"-dlq"),
		table:   processortest.Table(d, c.MemoriesGroup(), memoirrow.Table.Codec()),
	}
}

func headers(id string, more ...string) processortest.RecordOption {
	h := goka.Headers{topics.HeaderID: []byte(id)}
	for i := 0; i+1 < len(more); i += 2 {
		h[more[i]] = []byte(more[i+1])
	}
	return processortest.WithHeaders(h)
}

func (r *rig) end(session, user string) {
	r.ended.Pipe(user, topics.MemoirSnapshot{
		SessionID: &session, UserID: &user, ThinkResponse: &topics.ThinkResponse{EndTurn: true}, Messages: topics.Raw(`[{"role":"user"}]`),
	}, headers(session+"/snapshot/1"))
}

func (r *rig) answer(pass processortest.Record[topics.MemoirSnapshot], text string) {
	r.memories.Pipe(pass.Key, text, headers(pass.ID()+"/memory",
		topics.HeaderMemoirVersion, string(pass.Headers[topics.HeaderMemoirVersion])))
}

const step = `{"session_id":"s1","user_id":"mira","cost":0.0041,"history":[ {"role":"user","content":"\u0048i","x":1.50} ],` +
	`"latest_input":{"role":"user", "content":"Hé \"you\""},"memoir_context":null,"timestamp":"2026-06-20T08:15:03.188Z"`

// Only the memory of a step changes.
func TestStepGetsTheMemoryAndKeepsItsBytes(t *testing.T) {
	const both = `,"userId":"mira","latestInput":{"role":"user", "content":"Hé \"you\""},"memoirContext":null`
	for name, rest := range map[string]string{
		"plain": `}`, "prompt": `,"ephemeral_prompt":"Be \u003cbrief\u003e"}`, "both spellings": both + `}`,
		"both and prompt": `,"ephemeral_prompt":"Be brief"` + both + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, memoir.Config{})
			in := step + rest
			pipe := func() processortest.Record[topics.EnrichedMessage] {
				r.lookups.PipeRaw("mira", []byte(in), headers("turn/s/enriched/0", topics.HeaderDeadline, "1790000060000"))
				return r.steps.Next()
			}
			out := pipe()
			require.Equal(t, "s1", out.Key)
			want := strings.ReplaceAll(in, `\u003c`, `<`)
			want = strings.ReplaceAll(want, `\u003e`, `>`) // texts of the record itself are written in their shortest form
			require.Equal(t, want, string(out.Raw), "without a memory")
			require.Equal(t, goka.Headers{
				topics.HeaderID: []byte("turn/s/enriched/0"), topics.HeaderDeadline: []byte("1790000060000"),
			}, out.Headers)
			r.memories.Pipe("mira", "likes tea\nand \"boats\"", headers("e", topics.HeaderMemoirVersion, topics.MemoirEdit))
			want = strings.ReplaceAll(want, `_context":null`, `_context":"likes tea\nand \"boats\""`)
			want = strings.ReplaceAll(want, `moirContext":null`, `moirContext":"likes tea\nand \"boats\""`)
			require.Equal(t, want, string(pipe().Raw))
			r.lookups.PipeRaw("vera", []byte(in), headers("x"))
			require.Nil(t, r.steps.Next().Value.MemoirContext, "another user has another memory")
		})
	}
}

func TestStepGoesOnWithoutAMemoryIfTheRowIsDamagedOrNewer(t *testing.T) {
	r := newRig(t, memoir.Config{})
	raw := processortest.Table(r.Driver, r.topics.MemoriesGroup(), codec.Bytes())
	newer, err := memoirrow.Table.Marshal(&memoirrow.State{Version: 1 << 20, Memory: "new"})
	require.NoError(t, err)
	for _, row := range [][]byte{{0xff}, newer} {
		raw.Put("mira", row)
		r.lookups.PipeRaw("mira", []byte(step+"}"), headers("turn/s/enriched/0"))
		require.Equal(t, step+"}", string(r.steps.Next().Raw))
		require.Equal(t, row, raw.Raw("mira"))
	}
	raw.Put("mira", []byte{0xff})
	r.end("s1", "mira")
	require.Contains(t, string(r.letters.Next().Headers[topics.HeaderErrorReason]), "cannot be decoded")
	r.memories.PipeRaw("mira", nil)
	require.Nil(t, raw.Raw("mira"), "a tombstone deletes a damaged row")
}

func TestStepGetsTheLinesThatFitIntoItsRecord(t *testing.T) {
	r := newRig(t, memoir.Config{RecordLimit: 128 << 10})
	line := strings.Repeat("\"x\" ", 250)
	r.memories.Pipe("mira", strings.Repeat(line+"\n", 50), headers("e", topics.HeaderMemoirVersion, topics.MemoirEdit))
	for _, size := range []int{80 << 10, 126 << 10, 127 << 10} {
		for _, both := range []bool{false, true} {
			session, prompt := "s1", strings.Repeat("p", size)
			m := topics.EnrichedMessage{SessionID: &session, EphemeralPrompt: prompt, BothSpellings: both, LatestInput: topics.Raw(`{}`)}
			r.lookups.Pipe("mira", m, headers("turn/s/enriched/0"))
			out := r.steps.Next()
			lines := 0
			if out.Value.MemoirContext != nil {
				for _, l := range strings.Split(*out.Value.MemoirContext, "\n") {
					require.Equal(t, line, l, "cut between lines")
					lines++
				}
			}
			require.Equal(t, prompt, out.Value.EphemeralPrompt)
			require.LessOrEqual(t, len(out.Raw), 128<<10-128)
			copies := 1
			if both {
				copies = 2
			}
			require.Greater(t, len(out.Raw)+copies*(len(line)*3/2+20)+512, 128<<10, "no more would fit: %d lines", lines)
		}
	}
}

func TestStepWithoutASessionIsDeadLettered(t *testing.T) {
	r := newRig(t, memoir.Config{})
	r.lookups.PipeRaw("mira", []byte(`{}`))
	r.lookups.PipeRaw("mira", nil)
	require.Len(t, r.letters.Drain(), 2)
	r.lookups.PipeRaw("mira", []byte(step+"}"))
	require.NotEmpty(t, r.steps.Next().ID(), "a record without an ID gets one, the same if it is read again")
}

func TestEndedSessionBecomesMemory(t *testing.T) {
	r := newRig(t, memoir.Config{PassTimeout: 20 * time.Minute})
	r.end("s1", "mira")
	pass := r.passes.Next()
	require.Equal(t, "mira", pass.Key)
	require.Equal(t, "s1/snapshot/1", pass.ID())
	require.Equal(t, "0", string(pass.Headers[topics.HeaderMemoirVersion]))
	due, ok := topics.Deadline(pass.Headers[topics.HeaderDeadline])
	require.True(t, ok)
	require.Equal(t, noon.Add(20*time.Minute), due.UTC())
	require.Empty(t, pass.Value.MemoirContext)
	r.answer(pass, "likes tea")
	r.end("s2", "mira")
	pass = r.passes.Next()
	require.Equal(t, "likes tea", pass.Value.MemoirContext)
	r.answer(pass, "likes tea and boats")
	state, ok := r.table.Get("mira")
	require.True(t, ok)
	require.Equal(t, "likes tea and boats", state.Memory)
	require.Empty(t, state.Pending)
	require.NoError(t, r.Replay())
}

func TestSnapshotKeepsTheCostsOfItsSession(t *testing.T) {
	r := newRig(t, memoir.Config{})
	user, session := "mira", "s1"
	total, previous, think := 0.0081, 0.0063, 0.0018
	want := topics.ThinkResponse{TotalSessionCost: &total, PreviousSessionCost: &previous, ThinkCost: &think, EndTurn: true}
	r.ended.Pipe(user, topics.MemoirSnapshot{SessionID: &session, UserID: &user, ThinkResponse: &want}, headers("s1/snapshot/1"))
	pass := r.passes.Next()
	require.Equal(t, want.TotalSessionCost, pass.Value.ThinkResponse.TotalSessionCost)
	require.Equal(t, want.PreviousSessionCost, pass.Value.ThinkResponse.PreviousSessionCost)
	require.Equal(t, want.ThinkCost, pass.Value.ThinkResponse.ThinkCost)
	require.Contains(t, string(pass.Raw), `"total_session_cost":0.0081,"previous_session_cost":0.0063,"think_cost":0.0018`)
}

func TestSnapshotIsSentAfterAShortTimeWithoutAWorker(t *testing.T) {
	r := newRig(t, memoir.Config{})
	r.end("s1", "mira")
	r.passes.Next()
	r.end("s2", "mira")
	require.Empty(t, r.passes.Drain())
	r.Advance(10 * time.Second)
	require.Equal(t, "s2/snapshot/1", r.passes.Next().ID())
	require.NoError(t, r.Replay())
}

func TestGivenUpSnapshotIsDeadLetteredAsItWasRead(t *testing.T) {
	r := newRig(t, memoir.Config{Passes: 1})
	r.end("s1", "mira")
	pass := r.passes.Next()
	failed := processortest.In(r.Driver, r.topics.MemoirDLQ)
	failed.PipeRaw("mira", pass.Raw, headers(pass.ID(), topics.HeaderErrorReason, "the model is down"))
	letter := r.letters.Next()
	require.Equal(t, "memoir: given up: the worker gave up", string(letter.Headers[topics.HeaderErrorReason]))
	require.Equal(t, r.topics.MemoirSessions.Name(), string(letter.Headers[topics.HeaderErrorSourceTopic]))
	require.Equal(t, "s1/snapshot/1", letter.ID())
	require.Contains(t, string(letter.Raw), `"session_id":"s1"`)
	r.end("s2", "mira")
	r.passes.Next()
	r.Advance(30 * time.Minute)
	require.Contains(t, string(r.letters.Next().Headers[topics.HeaderErrorReason]), "no memory came in time")
}

func TestGraphChecksItsArguments(t *testing.T) {
	for want, c := range map[string]memoir.Config{
		"Limit is 1, want 1024 to 524288": {Limit: 1}, "PassTimeout is -1ns": {PassTimeout: -1}, "Passes is -1": {Passes: -1},
		"Backoff is -1ns": {Backoff: -1}, "PendingLimit is 1001": {PendingLimit: 1001}, "RememberFor is -1ns": {RememberFor: -1},
		"RememberCount is 4001": {RememberCount: 4001}, "RecordLimit is 1000": {RecordLimit: 1000},
		"Limit is 1048576, want 1024 to 524288": {Limit: 1 << 20},
	} {
		_, err := memoir.Graph("harbor", c)
		require.ErrorIs(t, err, memoir.ErrConfig)
		require.ErrorContains(t, err, want)
	}
	_, err := memoir.Graph(" ", memoir.Config{})
	require.Error(t, err)
	graph, err := memoir.Graph("harbor", memoir.Config{})
	require.NoError(t, err)
	require.NoError(t, graph.Validate())
}

func TestConfigFromTheEnvironment(t *testing.T) {
	env := map[string]string{"KAFKA_MAX_REQUEST_SIZE": "2000000", "MEMOIR_PASS_TIMEOUT_MS": "60000"}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	c, err := memoir.ConfigFromEnv(lookup)
	require.NoError(t, err)
	require.Equal(t, memoir.Config{RecordLimit: 2_000_000, PassTimeout: time.Minute}, c)
	c.Limit = 1_000_000
	_, err = memoir.Graph("harbor", c)
	require.NoError(t, err)
	env["KAFKA_MAX_REQUEST_SIZE"] = "x"
	_, err = memoir.ConfigFromEnv(lookup)
	require.ErrorIs(t, err, memoir.ErrEnvironment)
	require.Equal(t, []string{"KAFKA_MAX_REQUEST_SIZE", "MEMOIR_PASS_TIMEOUT_MS"}, memoir.EnvironmentNames())
}
