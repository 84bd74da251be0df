package crewhttp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/processors/internal/socket"
)

// resumption is the frame with which a client resumes from the beginning of agents.
func resumption(agents ...string) string {
	from := map[string]int64{}
	for _, id := range agents {
		from["agent/"+id] = 0
	}
	return string(entrance.Object("type", "resume", "from", from))
}

// What a client has missed is not limited by what may wait for it: it would be disconnected at each attempt.
func TestClientResumesMoreEventsThanItsQueueHolds(t *testing.T) {
	const agents, events = 5, 400
	r := newRig(t)
	var ids []string
	for a := range agents {
		id := fmt.Sprintf("a%d", a)
		r.agent(id, "c", "", func(row *agentRow) { row.seq = events })
		for range events {
			r.status(id, view.Idle)
		}
		ids = append(ids, id)
	}
	b, _ := r.open()
	for range 3 { // also one replay right after another
		b.send(resumption(ids...))
	}
	for range 3 {
		for _, id := range ids {
			for seq := range int64(events) {
				f := b.next("agent:status")
				require.Equal(t, []any{"agent/" + id, seq + 1}, []any{f.Subject, f.Seq})
			}
		}
		require.Equal(t, agents*events, b.next("resumed").Replayed)
	}
	r.status("a0", view.Running)
	require.Equal(t, int64(events+1), b.next("agent:status").Seq)
}

// The queue limits what arrives while a replay waits, and no more.
func TestLiveFramesStayInOrderBehindAReplay(t *testing.T) {
	q := queueOf(2, 10)
	put := func(text string) bool { return q.Put(socket.Frame{Text: []byte(text)}) }
	r := &replay{}
	for i := range 100 {
		r.add(fmt.Appendf(nil, "replayed %02d", i))
	}
	require.True(t, put("before"))
	q.replay(r)
	require.True(t, put("live"))
	require.False(t, put("late"), "two frames wait beside the replay")
	order := []string{"before"}
	for _, m := range r.frames {
		order = append(order, string(m.frame))
	}
	for _, want := range append(order, "live") {
		frame, ok := q.take()
		require.True(t, ok)
		require.Equal(t, want, string(frame))
	}
	_, ok := q.take()
	require.False(t, ok)
	require.True(t, put("room again"))
	require.True(t, put(""))
	require.Zero(t, q.replaying.Load())
	q.awaitReplay()
}

func TestReplayBeyondItsBytesNamesTheSubjectsThatAreLeftOut(t *testing.T) {
	r := newRig(t, func(c *Config) { c.QueueFrames, c.QueueBytes = 1024, 64<<10 })
	for _, id := range []string{"a", "b", "c"} {
		r.agent(id, "c", "", func(row *agentRow) { row.seq = 2 })
		r.event("agent:content", "agent/"+id, "", "", `{"agentId":"`+id+`","content":"`+strings.Repeat("x", 40<<10)+`"}`)
		r.status(id, view.Idle)
	}
	b, _ := r.open()
	b.send(resumption("a", "b", "c"))
	require.Equal(t, "agent/a", b.next("agent:content").Subject)
	require.Equal(t, "agent/a", b.next("agent:status").Subject)
	require.Equal(t, "agent/b", b.next("resume_gap").Subject)
	require.Equal(t, "agent/c", b.next("resume_gap").Subject)
	require.Equal(t, 2, b.next("resumed").Replayed)
	b.send(resumption("b"))
	require.Equal(t, "agent/b", b.next("agent:content").Subject)
	b.next("agent:status")
	b.next("resumed")
}

// The first subject of a replay may exceed the limit. No room is left then, but an up-to-date subject needs none.
func TestReplayBeyondItsBytesHasNoGapForSubjectsThatMissNothing(t *testing.T) {
	r := newRig(t, func(c *Config) { c.QueueFrames, c.QueueBytes = 1024, 1<<10 })
	r.event("agent:content", "agent/a", "", "", `{"agentId":"a","content":"`+strings.Repeat("x", 2<<10)+`"}`)
	for _, id := range []string{"b", "c", "d"} {
		r.status(id, view.Idle)
	}
	r.agent("a", "c", "")
	for _, id := range []string{"b", "c", "d"} {
		r.agent(id, "c", "", func(row *agentRow) { row.seq = 1 })
	}
	b, _ := r.open() // the state does not include the event of a
	require.Equal(t, "agent/a", b.next("agent:content").Subject)
	b.send(`{"type":"resume","from":{"agent/a":0,"agent/b":1,"agent/c":0,"agent/d":1}}`)
	require.Equal(t, "agent/a", b.next("agent:content").Subject)
	require.Equal(t, "agent/c", b.next("resume_gap").Subject)
	require.Equal(t, 1, b.next("resumed").Replayed)
}

// A client names subjects that the door does not know, for example after its index has started again.
func TestManyUnknownSubjectsAreGaps(t *testing.T) {
	r := newRig(t, func(c *Config) { c.QueueFrames, c.QueueBytes = 16, 1<<10 })
	b, _ := r.open()
	ids := make([]string, 1000)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	b.send(resumption(ids...))
	for range ids {
		b.next("resume_gap")
	}
	b.next("resumed")
}

// The rows can be far behind the events when a client connects.
func TestInitIsFollowedByMoreEventsThanTheQueueHolds(t *testing.T) {
	r := newRig(t, func(c *Config) { c.QueueFrames, c.QueueBytes = 16, 1<<20 })
	r.agent("a", "c", "")
	for range 500 {
		r.status("a", view.Idle)
	}
	b, hello := r.open()
	require.Zero(t, hello.Seqs["agent/a"])
	for seq := range int64(500) {
		require.Equal(t, seq+1, b.next("agent:status").Seq)
	}
	b.done()
}

func TestReplayedTextIsRedacted(t *testing.T) {
	r := newRig(t)
	r.agent("a", "c", "", func(row *agentRow) { row.seq = 2 })
	r.text("a", "export API_KEY=hunter2")
	r.text("a", "hunter2 ")
	b, _ := r.open()
	b.send(`{"type":"subscribe"}`)
	b.done()
	b.send(resumption("a"))
	f := b.next("agent:text")
	require.Equal(t, "export API_KEY="+redacted+" ", f.Text)
	require.Equal(t, []int64{1, 2}, []int64{f.FromSeq, f.Seq})
}
