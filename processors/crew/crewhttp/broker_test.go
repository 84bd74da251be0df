package crewhttp

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

// field is a broker with the three groups. The test is the host and the gates.
type field struct {
	t       *testing.T
	brokers []string
	topics  topics.Catalog
	to      *processors.KafkaPublisher

	mu     sync.Mutex
	known  map[string]bool // IDs of actions
	number int64
}

func newField(t *testing.T, g processors.Guarantee) *field {
	t.Helper()
	f := &field{t: t, brokers: testbroker.Start(t), known: map[string]bool{}, number: 7_000_000_000}
	var err error
	f.topics, err = topics.For(testbroker.Agent(), topics.WithCrews(), topics.WithGates())
	require.NoError(t, err)
	require.NoError(t, topics.EnsureCluster(t.Context(), f.brokers, kafka.Config(), f.topics, topics.WithPartitions(2)))
	f.to, err = processors.NewPublisher(f.brokers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.to.Close()) })
	graphs, err := crew.Graphs(f.topics.Agent, crew.Config{})
	require.NoError(t, err)
	for i, graph := range graphs {
		p, err := processors.New(f.brokers, graph, processors.WithTopics(f.topics), processors.WithPartitions(2),
			processors.WithInstance(fmt.Sprint("i", i)), processors.WithGuarantee(g), processors.WithTick(20*time.Millisecond),
			processors.WithStorage(processors.LevelDB(t.TempDir())))
		require.NoError(t, err)
		f.run(p.Run)
		require.Eventually(t, func() bool { return p.Health().State == processors.Running }, waitLimit, 10*time.Millisecond)
	}
	world, err := processors.NewFollower(f.brokers, []string{f.topics.CrewActions.Name(), f.topics.GateDecisions.Name()}, f.onRecord)
	require.NoError(t, err)
	f.run(world.Run)
	<-world.Ready()
	return f
}

// run runs a function until the test ends.
func (f *field) run(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ran; err != nil {
			f.t.Error(err)
		}
	})
	f.t.Cleanup(stop)
	return stop
}

// onRecord is what the host and the gates do.
func (f *field) onRecord(r processors.Inbound) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Topic == f.topics.GateDecisions.Name() {
		d := f.topics.GateDecisions.Codec().Unmarshal(r.Value).Value
		out, err := processors.OutboundOf(f.topics.GateOutcomes, d.SessionID, topics.GateOutcome{
			GateID: d.GateID, SessionID: d.SessionID, Kind: topics.GatePermission, Status: topics.GateApproved,
			Cause: topics.CauseHuman, DecisionID: d.DecisionID, By: d.By,
		}, d.GateID+"/outcome")
		f.publish(out, err)
		return
	}
	a := f.topics.CrewActions.Codec().Unmarshal(r.Value).Value
	if f.known[a.ActionID] {
		return
	}
	f.known[a.ActionID] = true
	id := mailbox.ID(a.Subject)
	switch a.Kind {
	case crewbody.Start{}.Kind():
		f.host(id, crewbody.Started{Run: a.ActionID})
		f.host(id, crewbody.SessionReady{Run: a.ActionID, SessionID: "s1"})
	case crewbody.Send{}.Kind():
		send, _ := crewbody.Decode[crewbody.Send](a.Body)
		f.host(id, crewbody.Updates{Run: send.Run, SessionID: "s1", Updates: []topics.Raw{
			topics.Raw(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hello"}}`),
		}})
		f.host(id, crewbody.Permission{
			Run: send.Run, RequestID: send.PromptID, SessionID: "s1",
			ToolCall: topics.Raw(`{"toolCallId":"t","title":"Build","kind":"execute","rawInput":{"command":"echo ` + strings.Repeat("a", 3000) + `; make"}}`),
			Options:  topics.Raw(`[{"optionId":"once","name":"Allow","kind":"allow_once"}]`),
		})
	case crewbody.Answer{}.Kind():
		answered, _ := crewbody.Decode[crewbody.Answer](a.Body)
		f.host(id, crewbody.TurnEnded{Run: answered.Run, PromptID: answered.RequestID, StopReason: "end_turn"})
	}
}

// host writes an input of the host. The caller holds the lock.
func (f *field) host(agent string, body crewbody.Body) {
	f.number++
	out, err := processors.OutboundOf(f.topics.CrewAgentInputs, agent, topics.CrewInput{
		InputID: fmt.Sprint("host>", f.number), Kind: body.Kind(), From: "host/north", Number: f.number, Body: crewbody.Encode(body),
	}, fmt.Sprint("host>", f.number))
	f.publish(out, err)
}

func (f *field) publish(out processors.Outbound, err error) {
	if err == nil {
		err = f.to.Publish(context.Background(), out)
	}
	if err != nil {
		f.t.Error(err)
	}
}

// door is a door as a process has it.
func (f *field) door(change ...func(*Index)) (r *rig, stop func()) {
	f.t.Helper()
	r = &rig{t: f.t}
	var err error
	r.index, err = NewIndex(f.topics.Agent, Config{})
	require.NoError(f.t, err)
	for _, c := range change {
		c(r.index)
	}
	r.door, err = New(r.index, f.to, Config{DecisionWait: maxWait})
	require.NoError(f.t, err)
	r.http = httptest.NewServer(r.door)
	f.t.Cleanup(r.http.Close)
	stop = f.run(func(ctx context.Context) error { return r.index.Run(ctx, f.brokers) })
	select {
	case <-r.index.Ready():
	case <-time.After(waitLimit):
		require.FailNow(f.t, "the index is not ready")
	}
	return r, stop
}

// until reads frames up to one of a type and returns it.
func (b *browser) until(kind string) frame {
	b.t.Helper()
	for {
		f, err := b.read()
		require.NoError(b.t, err, kind)
		if f.Type == kind {
			return f
		}
	}
}

// A person configures a crew, spawns an agent, allows what it asks, locks a file and sends a message; a second door knows all.
func TestPersonWorksWithACrew(t *testing.T) {
	for _, g := range testbroker.Guarantees(t, processors.AtLeastOnce, processors.ExactlyOnce) {
		t.Run(string(g), func(t *testing.T) {
			f := newField(t, g)
			d, stop := f.door()
			b, init := d.open()
			require.Empty(t, init.Agents)
			b.send(`{"type":"subscribe"}`)
			b.done()

			configured := d.do("POST", "/api/crews", `{"crewId":"crew-1","host":"north","cwd":"/w","repository":"repo","projectId":"p"}`)
			require.Equal(t, 202, configured.status, configured.body)
			spawned := d.do("POST", "/api/agents", `{"crewId":"crew-1","roleId":"lead","task":"build"}`, "Idempotency-Key", "1")
			require.Equal(t, 202, spawned.status, spawned.body)
			id := spawned.members(t)["id"].(string)
			b.until("agent:spawned")
			require.Equal(t, "hello", b.until("agent:text").Text)
			var asked struct {
				AgentID string `json:"agentId"`
				Request struct {
					ID string `json:"id"`
				} `json:"request"`
			}
			require.NoError(t, json.Unmarshal([]byte(b.until(askedEvent).raw), &asked))
			require.Equal(t, id, asked.AgentID)
			whole := d.do("GET", "/api/agents/"+id+"/permissions/"+asked.Request.ID, "")
			require.Equal(t, 200, whole.status, whole.body)
			require.Contains(t, whole.body, "; make")
			allowed := d.do("POST", "/api/agents/"+id+"/permission", `{"approved":true,"requestId":"`+asked.Request.ID+`"}`)
			require.Equal(t, 200, allowed.status, allowed.body)
			for b.until("agent:status").Status != "idle" {
				continue
			}
			require.Equal(t, 202, d.do("POST", "/api/coordination/locks", `{"agentId":"`+id+`","filePath":"a.go"}`).status)
			b.until("lock:acquired")
			require.Equal(t, 202, d.do("POST", "/api/agents", `{"crewId":"crew-1","roleId":"lead","task":"build"}`, "Idempotency-Key", "1").status)
			require.Equal(t, 202, d.do("POST", "/api/agents/"+id+"/message", `{"text":"again"}`).status)
			again := b.until(askedEvent)
			stop()
			_, _ = b.closed()

			second, _ := f.door()
			b, init = second.open()
			require.Len(t, init.Agents, 1, "a repeated request spawns one agent")
			require.Len(t, init.Agents[0].Permissions, 1, "what is open is seen after a restart")
			require.Contains(t, init.raw, `"filePath":"a.go"`)
			b.send(`{"type":"subscribe","agentId":"` + id + `"}`)
			require.Contains(t, b.until("agent:buffer").Data, "hello", "the past is read")
			b.send(`{"type":"resume","from":{"agent/` + id + `":0}}`)
			b.until("agent:spawned")
			require.Equal(t, again.Seq, b.lastOf(askedEvent).Seq)
			require.Equal(t, 404, second.do("GET", "/api/agents/none", "").status)
			require.Equal(t, 200, second.do("GET", init.Agents[0].Permissions[0].URL, "").status)
			b.send(`{"type":"permission_response","agentId":"` + id + `","approved":true}`)
			b.until(resolvedEvent)
			var activities []any
			require.NoError(t, json.Unmarshal([]byte(second.do("GET", "/api/coordination/activity", "").body), &activities))
			require.NotEmpty(t, activities)
		})
	}
}

// lastOf reads frames up to "resumed" and returns the last one of a type.
func (b *browser) lastOf(kind string) (last frame) {
	b.t.Helper()
	for {
		f, err := b.read()
		require.NoError(b.t, err)
		switch f.Type {
		case kind:
			last = f
		case "resumed":
			return last
		}
	}
}

// A client can have seen an event of another process's door that this one has not read.
func TestIndexCatchesUpWithTheEventsThatAnnounceRows(t *testing.T) {
	t.Parallel()
	f := newField(t, processors.AtLeastOnce)
	hold := make(chan struct{})
	r, _ := f.door(func(x *Index) {
		handle := x.events.Handle
		x.events.Handle = func(in processors.Inbound) {
			<-hold
			handle(in)
		}
	})
	release := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release)
	require.NoError(t, r.index.catchUp(t.Context()))
	out, err := processors.OutboundOf(f.topics.CrewEvents, "agent/a", topics.CrewEvent{Subject: "agent/a", Seq: 1, Type: "status"}, "e")
	f.publish(out, err)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, r.index.catchUp(ctx), ErrNotReady)
	release()
	require.Eventually(t, func() bool { return r.index.catchUp(t.Context()) == nil }, waitLimit, time.Millisecond)
}
