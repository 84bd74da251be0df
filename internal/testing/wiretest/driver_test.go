package wiretest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

func ExamplePlan() {
	p := Plan{Key: "k1", Steps: 1, Tools: 2, Quirks: []Quirk{QuirkRepeat}, Deeds: []Deed{DeedOK, DeedLate}}
	fmt.Println(p.Text())
	fmt.Println(p.Deed(0, 1), p.Codes()[0] == "")
	// Output:
	// plan key=k1 steps=1 tools=2 quirks=repeat deeds=ok,late
	// late true
}

func TestPlanIsParsedFromItsText(t *testing.T) {
	p := Plan{
		Key: "k", Steps: 2, Tools: 3, Pad: 7, Quirks: []Quirk{QuirkCamel, QuirkRepeat}, Deeds: []Deed{DeedFail, DeedHuge},
	}
	got, at, ok := parsePlan(p.at(1) + "\npadding")
	require.True(t, ok)
	require.Equal(t, 1, at)
	require.Equal(t, p, got)
	_, _, ok = parsePlan("hello")
	require.False(t, ok)
}

// enriched is a record as the pipeline writes it for a plan's first step.
func enriched(p Plan) *kgo.Record {
	latest := string(Say{Session: "s", User: "u", Text: p.Text(), Time: time.UnixMilli(1)}.Value())
	return &kgo.Record{
		Topic: "agent-enriched-message-input", Key: []byte("s"), Timestamp: time.UnixMilli(2),
		Value: []byte(`{"session_id":"s","user_id":"u","cost":0.5,"history":[],"latest_input":` + latest +
			`,"memoir_context":null,"timestamp":"2026-06-20T08:15:03Z"}`),
	}
}

func TestModelGivesARedeliveredRecordTheSameAnswer(t *testing.T) {
	names := NamesOf("agent")
	for _, q := range []Quirk{
		QuirkRepeat, QuirkLateRepeat, QuirkRethink, QuirkCamel, QuirkLegacy, QuirkNoEcho, QuirkShortEcho, QuirkBlocks,
		QuirkSilentText, QuirkNullItems, QuirkNullMessage, QuirkBlankID, QuirkRepeatID, QuirkSameIDs, QuirkEndTools,
		QuirkAgent, QuirkGarbage, QuirkNoEnd, QuirkFail, QuirkFailText,
	} {
		for steps := range 2 {
			p := Plan{Key: "k", Steps: steps, Tools: 2, Quirks: []Quirk{q}, Deeds: []Deed{DeedEarly, DeedOK}}
			e, ok := readEnriched(names, enriched(p))
			require.True(t, ok)
			require.Equal(t, p, e.Plan)
			replies := Planned(e)
			require.NotEmpty(t, replies, q)
			require.Equal(t, replies, Planned(e), q)
			for _, r := range replies {
				if r.Expected.Fate != FateDeadLetter {
					require.True(t, json.Valid(r.Record.Value), q)
				}
			}
		}
	}
	e, _ := readEnriched(names, enriched(Plan{Key: "k", Quirks: []Quirk{QuirkSilence}}))
	require.Empty(t, Planned(e))
}

func TestModelFindsItsPlanAndStepInTheHistory(t *testing.T) {
	p := Plan{Key: "k", Steps: 2, Tools: 1}
	e, _ := readEnriched(NamesOf("agent"), enriched(p))
	said := plannedResponse(e, "").messageTexts[0]
	r := enriched(p)
	r.Value = []byte(`{"history":[` + string(e.Latest) + `,` + said + `],"latest_input":{"role":"tool","content":[]}}`)
	next, ok := readEnriched(e.Names, r)
	require.True(t, ok)
	require.Equal(t, p, next.Plan)
	require.Equal(t, 1, next.Step)
}

func TestToolsGiveARedeliveredCallTheSameAnswer(t *testing.T) {
	for _, d := range []Deed{
		DeedOK, DeedTwice, DeedAgain, DeedLate, DeedForeign, DeedEarly, DeedError, DeedFail, DeedText, DeedList, DeedNumber,
		DeedNull, DeedLong, DeedHuge, DeedCount, DeedNames, DeedElsewhere, DeedJunk,
	} {
		r := &kgo.Record{Topic: "agent-tool-use", Key: []byte("s"), Timestamp: time.UnixMilli(3), Value: []byte(
			`{"tool_use_id":"tu","tool_id":"x","name":"x","input":` +
				callInput(Plan{Key: "k", Tools: 1, Deeds: []Deed{d}}, 0, 0) +
				`,"session_id":"s","total_tools":1,"timestamp":null}`)}
		c, ok := readCall(NamesOf("agent"), r)
		require.True(t, ok)
		require.Equal(t, d, c.Deed)
		replies := Dealt(c)
		require.NotEmpty(t, replies, d)
		require.Equal(t, replies, Dealt(c), d)
		last := replies[len(replies)-1]
		require.True(t, json.Valid(last.Record.Value), d)
		require.Less(t, len(last.Record.Value), 1_000_000)
	}
}

func TestWorkersThatDropRepeatsAnswerARecordOnce(t *testing.T) {
	bootstrap := broker(t, "agent", 1)
	ctx := deadline(t, time.Minute)
	d, err := NewDriver(ctx, bootstrap, "agent", WithRepeatsDropped())
	require.NoError(t, err)
	defer d.Close() //nolint:errcheck // nothing depends on it
	plan := Plan{Key: "k", Steps: 1, Tools: 1}
	step, call := enriched(plan), &kgo.Record{
		Topic: d.names.ToolUse, Key: []byte("s"), Timestamp: time.UnixMilli(3),
		Value: []byte(`{"tool_use_id":"tu","name":"x","input":` + callInput(plan, 0, 0) + `}`),
	}
	for _, id := range []string{"t/0", "t/0", "t/1", "t/0"} {
		step.Headers = []kgo.RecordHeader{{Key: headerID, Value: []byte(id)}}
		call.Headers = step.Headers // an id of another topic is another record's
		require.NoError(t, d.answerStep(ctx, step))
		require.NoError(t, d.answerCall(ctx, call))
	}
	require.Equal(t, 4, d.answered.count())
	for topic, want := range map[string][]string{
		d.names.Think: {"t/0/think", "t/1/think"}, d.names.ToolUseResult: {"t/0/result", "t/1/result"},
	} {
		client, err := kgo.NewClient(readerOptions(bootstrap, map[string]int32{topic: 1}, kgo.ReadCommitted())...)
		require.NoError(t, err)
		var ids []string
		for len(ids) < len(want) {
			fetches := client.PollRecords(ctx, 10)
			require.NoError(t, fetches.Err0())
			fetches.EachRecord(func(r *kgo.Record) {
				id, _ := header(r, headerID)
				ids = append(ids, id)
			})
		}
		client.Close()
		require.Equal(t, want, ids)
	}
}

func TestEveryInputHasMalformedRecords(t *testing.T) {
	names := NamesOf("agent")
	for _, topic := range names.Inputs() {
		cases := map[string]bool{}
		for _, m := range Malformed(names, topic, "s") {
			require.NotEqual(t, FateOwn, m.Expected.Fate)
			require.False(t, cases[m.Expected.Case], "%s on %s", m.Expected.Case, topic)
			require.Equal(t, topic, m.Record.Topic)
			require.Less(t, len(m.Record.Value), 1_000_000)
			cases[m.Expected.Case] = true
		}
		require.GreaterOrEqual(t, len(cases), 16, topic)
	}
}

func TestFullBacklogReleasesTheOldestRecord(t *testing.T) {
	b := newBacklog(2)
	one := func(v string) delayedRecord { return delayedRecord{record: Record{Value: []byte(v)}} }
	for _, v := range []string{"a", "b"} {
		_, full := b.add(one(v))
		require.False(t, full)
	}
	out, full := b.add(one("c"))
	require.True(t, full)
	require.Equal(t, one("a"), out)
	require.Equal(t, []delayedRecord{one("b"), one("c")}, b.drain())
	require.Empty(t, b.drain())
}

func TestDriverRequiresTopicsAndStartsOnce(t *testing.T) {
	bootstrap := broker(t, "agent", 1)
	_, err := NewDriver(t.Context(), bootstrap, "nobody")
	require.ErrorContains(t, err, "nobody-message-input does not exist")
	d, err := NewDriver(t.Context(), bootstrap, "agent", WithRoles(RoleModel))
	require.NoError(t, err)
	require.NoError(t, d.Start(t.Context()))
	require.Error(t, d.Start(t.Context()))
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
}
