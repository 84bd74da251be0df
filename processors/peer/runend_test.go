package peer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

func TestOutputOfTheTurnEndsTheRun(t *testing.T) {
	p := begun(t)
	p.Handle(p.toolCall("turn-1/0/tool-use/0", "read", "{}"))
	p.Now = p.Now.Add(time.Second)
	es := p.Handle(p.answer("42 rows"))
	require.Len(t, es, 1)
	end := machinetest.Only[topics.PeerCommand](t, es)
	require.Equal(t, topics.PeerEnd, end.Kind)
	run := p.Read().Run
	require.Equal(t, run.RunId+"/end", es[0].ID)
	require.Empty(t, p.Handle(p.answer("another one")), "an end is on its way")
	require.Empty(t, p.Handle(p.about(topics.PeerCancel, "")))

	es = p.Handle(p.own("", end))
	require.Equal(t, peerwire.Reply{
		TaskID: "t-9", PeerInstanceID: "hq-1", PeerRunID: run.RunId, PeerSessionID: p.key, Status: peerwire.StatusSuccess,
		Result: "42 rows", ToolsUsed: []string{"read"}, AgentID: "harbor", Model: "m-1",
	}, replied(t, es))
	require.Equal(t, topics.PeerAudit{
		Event: topics.PeerCompleted, TaskID: "t-9", InstanceID: "hq-1", AtMS: p.Now.UnixMilli(), SessionID: p.key, RunID: run.RunId,
		InboundID: "partner-b", Status: "success", ResultLength: 7, ToolsUsed: []string{"read"},
	}, machinetest.Only[topics.PeerAudit](t, es))
	require.Empty(t, machinetest.Values[topics.Output](es))
	kept := p.Read().Run
	require.Equal(t, peerrow.Run_ENDED, kept.Phase)
	require.Empty(t, kept.Waiters)
	require.Empty(t, kept.ParentSessionId)
	require.Equal(t, []string{"a-1"}, kept.Chain, "calls of a turn that continues are still those of a peer")
	require.Empty(t, p.Handle(p.own("", end)), "read again")
}

func TestOutputsOfOtherTurnsDoNotEndTheRun(t *testing.T) {
	p := begun(t)
	other := "x"
	require.Empty(t, p.Handle(p.answer("no", func(o *topics.Output) { o.RequestID = &other })))
	foreign := p.answer("no")
	foreign.Agent = "pilot"
	require.Empty(t, p.Handle(foreign))
	require.Equal(t, peerrow.Run_RUNNING, p.Read().Run.Phase)
	none := p.answer("yes", func(o *topics.Output) { o.RequestID = nil })
	require.Equal(t, "yes", replied(t, p.settle(none)).Result, "a pipeline without request IDs")
}

func TestErrorOutputsAreErrors(t *testing.T) {
	status := "error"
	for want, change := range map[string]func(*topics.Output){
		"the model failed": func(o *topics.Output) {
			o.Status, o.Error = &status, &topics.OutputError{Code: "think_failed", Message: "the model failed"}
		},
		"content":         func(o *topics.Output) { o.Status, o.Content = &status, "content" },
		"the turn failed": func(o *topics.Output) { o.Content, o.Error = "x", &topics.OutputError{Code: "internal", Message: " "} },
		strings.Repeat("x", peerwire.MaxDetail) + "…": func(o *topics.Output) {
			o.Error = &topics.OutputError{Message: strings.Repeat("x", peerwire.MaxDetail+1)}
		},
	} {
		p := begun(t)
		es := p.settle(p.answer("", change))
		require.Equal(t, peerwire.StatusError, replied(t, es).Status)
		require.Equal(t, want, replied(t, es).Error)
		require.Empty(t, replied(t, es).Result)
		require.Equal(t, []topics.PeerEvent{topics.PeerCompleted}, events(es))
	}
	p := begun(t)
	r := replied(t, p.settle(p.answer("")))
	require.Equal(t, peerwire.StatusSuccess, r.Status, "an empty answer")
	require.Empty(t, r.Result)
}

func TestResultThatIsTooLargeIsCutWithItsSize(t *testing.T) {
	for result, fits := range map[string]bool{
		strings.Repeat("x", maxResult): true, strings.Repeat("x", 700_000): false, strings.Repeat("é", 350_000): false,
		strings.Repeat("\x01", 100<<10): false, // escaped in the reply and again in a callback
	} {
		p := begun(t)
		r := replied(t, p.settle(p.answer(result)))
		require.Equal(t, peerwire.StatusSuccess, r.Status)
		require.Empty(t, r.Error)
		require.Equal(t, "m-1", r.Model)
		if fits {
			require.Len(t, r.Result, len(result))
			continue
		}
		requireCut(t, r.Result, result)
		require.Greater(t, len(r.Result), 60<<10, "as much as fits")
	}
	small := func(c *Config) { c.RowLimit, c.RecordLimit = 64<<10, 128<<10 }
	p := begun(t, small)
	result := strings.Repeat("x", minReply)
	requireCut(t, replied(t, p.settle(p.answer(result))).Result, result) // the row is small
}

// requireCut checks that a text is the beginning of another one, with a note of its size.
func requireCut(t *testing.T, got, of string) {
	t.Helper()
	kept, note, ok := strings.Cut(got, "\n\n[Truncated: ")
	require.True(t, ok, "there is a note")
	require.Less(t, len(kept), len(of))
	require.True(t, strings.HasPrefix(of, kept))
	require.Equal(t, fmt.Sprintf("the first %d of %d bytes.]", len(kept), len(of)), note)
}

// Every text of a reply may be escaped to six bytes.
func TestReplyAlwaysFits(t *testing.T) {
	p := newReceiver(t, func(c *Config) { c.RowLimit, c.RecordLimit = 64<<10, 128<<10 })
	worst := strings.Repeat("\x01", peerwire.MaxID)
	req := request(func(r *peerwire.Request) { r.TaskID, r.Model = worst, worst })
	p.Handle(p.runOf(req, "w1"))
	require.NotNil(t, p.Read().GetRun())
	for i := range maxTools {
		p.Handle(p.toolCall("", strings.Repeat("\x01", maxToolName-3)+string(rune('a'+i%26))+string(rune('a'+i/26)), "{}"))
	}
	es := p.settle(p.answer(strings.Repeat("x", 30<<10)))
	reply, err := peerwire.ReadReply(machinetest.Only[topics.PeerReply](t, es).Body, worst)
	require.NoError(t, err)
	require.Equal(t, "the reply does not fit into a record", reply.Error)
	require.Equal(t, []topics.PeerEvent{topics.PeerFailed}, events(es))
}

func TestFirstEndThatIsReadCounts(t *testing.T) {
	p := begun(t)
	first := machinetest.Only[topics.PeerCommand](t, p.Handle(p.answer("42 rows")))
	other := begun(t)
	second := machinetest.Only[topics.PeerCommand](t, other.Handle(other.about(topics.PeerCancel, "")))
	require.Equal(t, "cancelled", replied(t, p.Handle(p.own("", second))).Error, "from before a crash")
	require.Empty(t, p.Handle(p.own("", first)))
	require.Equal(t, topics.PeerDone, machinetest.Only[topics.PeerReply](t, p.Handle(p.about(topics.PeerAsk, "w"))).State)
	require.Contains(t, string(p.Read().Run.Reply), "cancelled")
}

func TestEndsOfOtherRunsAreIgnored(t *testing.T) {
	p := begun(t)
	end := machinetest.Only[topics.PeerCommand](t, p.Handle(p.answer("42 rows")))
	p.Handle(p.own("", end))
	p.advance(p.config.RememberFor)
	require.Nil(t, p.Row, "forgotten")
	require.Empty(t, p.Handle(p.own("", end)))
	require.Nil(t, p.Row)
	require.Len(t, machinetest.Values[topics.Message](p.Handle(p.runCommand("w1"))), 1, "the same task ID is a new task")
	require.Empty(t, p.Handle(p.own("", end)), "the end of the former run")
	require.Equal(t, peerrow.Run_RUNNING, p.Read().Run.Phase)

	bad := end
	bad.Reply = topics.Raw(`{"taskId":"t-9"}`)
	require.Equal(t, reasonReply, letter(t, p.Handle(p.own("", bad))))
}

func TestLostEndIsWrittenAgain(t *testing.T) {
	p := begun(t)
	first := p.Handle(p.answer("42 rows"))
	again := p.advanceTo()
	require.Equal(t, first.Records(), again.Records())
	require.Equal(t, writeAgain, p.Now.Sub(time.UnixMilli(1_790_000_000_000)))
	require.Equal(t, "42 rows", replied(t, p.settle(p.own("", machinetest.Only[topics.PeerCommand](t, p.advanceTo())))).Result)
	require.Empty(t, p.advance(time.Hour))

	thrown := newReceiver(t, func(c *Config) { c.RecordLimit = 128 << 10; c.RowLimit = 64 << 10 })
	one := thrown.Handle(thrown.runOf(request(func(r *peerwire.Request) { r.Content = strings.Repeat("x", 120<<10) }), ""))
	require.Equal(t, machinetest.Only[topics.PeerCommand](t, one), machinetest.Only[topics.PeerCommand](t, thrown.advanceTo()))
	require.Equal(t, "internal", machinetest.Only[topics.PeerCommand](t, one).Code)
}

func TestReplyIsDeliveredToTheCallbackService(t *testing.T) {
	p := newReceiver(t)
	p.Handle(p.runCommand("w1", detached, func(c *topics.PeerCommand) { c.CallbackService, c.CallbackToken = "partner-b-cb", "T\"7" }))
	p.Handle(p.runCommand("w2", func(c *topics.PeerCommand) { c.CallbackService, c.CallbackToken = "other", "T8" }))
	id := p.Read().Run.RunId
	es := p.settle(p.answer("42 rows"))
	cb := machinetest.Only[topics.Output](t, es)
	require.Equal(t, string(machinetest.Only[topics.PeerReply](t, es).Body), cb.Content)
	require.Equal(t, "partner-b-cb", topics.ServiceOf(cb.ReplyTo), "the first one counts")
	require.Equal(t, "T\"7", topics.TokenOf(cb.ReplyTo))
	require.Equal(t, id, *cb.RequestID)
	require.Equal(t, "harbor", cb.SourceAgent)
	require.Nil(t, cb.Status)
	require.NotContains(t, p.Read().String(), "T\\\"7", "the token is not kept")
	require.Empty(t, machinetest.Values[topics.Output](p.Handle(p.runCommand("w3"))))

	p = begun(t)
	p.Handle(p.runCommand("w2", func(c *topics.PeerCommand) { c.CallbackService, c.CallbackToken = "other", "T8" }))
	require.Equal(t, "other", topics.ServiceOf(machinetest.Only[topics.Output](t, p.settle(p.answer("x"))).ReplyTo), "a later one counts")
}

func TestRunTimesOut(t *testing.T) {
	p := begun(t)
	require.Empty(t, p.advance(p.config.RunTime-time.Millisecond))
	es := p.advance(time.Millisecond)
	require.Len(t, machinetest.Values[topics.Control](es), 1)
	require.Equal(t, "timed out after 600000 ms", replied(t, es).Error)
	require.Equal(t, peerwire.StatusError, replied(t, es).Status)

	p = newReceiver(t)
	p.Handle(p.runCommand("w1", func(c *topics.PeerCommand) { c.DeadlineMS = p.Now.UnixMilli() + 1500 }))
	require.Equal(t, "timed out after 1500 ms", replied(t, p.advance(1500*time.Millisecond)).Error)
	p = newReceiver(t)
	p.Handle(p.runCommand("w1", func(c *topics.PeerCommand) { c.DeadlineMS = p.Now.Add(time.Hour).UnixMilli() }))
	require.Equal(t, "timed out after 600000 ms", replied(t, p.advance(10*time.Minute)).Error, "the limit of the group")
}

func TestRunThatIsReadAfterItsDeadlineIsNotBegun(t *testing.T) {
	p := newReceiver(t)
	c := p.runCommand("w1", func(c *topics.PeerCommand) { c.DeadlineMS = p.Now.UnixMilli() + 1000 })
	p.Now = p.Now.Add(time.Second)
	es := p.settle(c)
	require.Empty(t, machinetest.Values[topics.Message](es))
	require.Len(t, machinetest.Values[topics.Control](es), 1, "it may have begun before a crash")
	require.Equal(t, "timed out after 1000 ms", replied(t, es).Error)
	require.Equal(t, []topics.PeerEvent{topics.PeerReceived, topics.PeerCompleted}, events(es))
}

func TestPurgeEndsTheRun(t *testing.T) {
	p := begun(t)
	foreign := p.control(topics.ActionPurge)
	foreign.Agent = "pilot"
	require.Empty(t, p.Handle(foreign), "the session of another agent")
	es := p.settle(p.control(topics.ActionPurge))
	require.Empty(t, machinetest.Values[topics.Control](es), "the turn reads the purge itself")
	require.Equal(t, "session purged", replied(t, es).Error)
	require.NotContains(t, p.Read().String(), "s-1")
	require.Empty(t, p.settle(p.control(topics.ActionPurge)))
	require.Empty(t, p.settle(p.control(topics.ActionCancel)))
}

func TestEndedRunIsRememberedForItsTime(t *testing.T) {
	p := begun(t)
	p.settle(p.answer("42 rows"))
	p.advance(p.config.RememberFor - time.Millisecond)
	require.Equal(t, topics.PeerDone, machinetest.Only[topics.PeerReply](t, p.Handle(p.about(topics.PeerAsk, "w"))).State)
	p.advance(time.Millisecond)
	require.Nil(t, p.Row)
	require.Equal(t, topics.PeerUnknown, machinetest.Only[topics.PeerReply](t, p.Handle(p.about(topics.PeerAsk, "w"))).State)
}

func TestReplyOfARowWithALowerLimitIsNotStored(t *testing.T) {
	p := begun(t)
	end := machinetest.Only[topics.PeerCommand](t, p.Handle(p.answer(strings.Repeat("x", 200<<10))))
	p = begun(t, func(c *Config) { c.RowLimit, c.RecordLimit = 64<<10, 512<<10 })
	require.Len(t, replied(t, p.Handle(p.own("", end))).Result, 200<<10)
	require.Contains(t, string(machinetest.Only[topics.PeerReply](t, p.Handle(p.about(topics.PeerAsk, "w"))).Body), "no longer stored")
}

func TestAgentThatIsNoLongerConfiguredIsNotTold(t *testing.T) {
	p := begun(t)
	p.agents = nil
	es := p.advance(p.config.RunTime)
	require.Equal(t, "timed out after 600000 ms", replied(t, es).Error)
	require.Empty(t, machinetest.Values[topics.Control](es))
}
