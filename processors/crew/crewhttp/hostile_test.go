package crewhttp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	ws "github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/processors/internal/socket"
)

// A client that does not read is disconnected, and delays no other.
func TestSlowReaderIsDisconnectedAndDelaysNoOther(t *testing.T) {
	// The write of a frame takes at most two seconds: the fast client reads each at once, also on a machine with load.
	r := newRig(t, func(c *Config) {
		c.QueueFrames, c.QueueBytes, c.PingInterval, c.PongTimeout, c.WriteTimeout = 16, 1<<20, time.Minute, time.Minute, 2*time.Second
	})
	r.agent("a", "c", "")
	slow, _ := r.open()
	fast, _ := r.open()
	long := strings.Repeat("x", 256<<10)
	gone := func() bool {
		r.index.mu.Lock()
		defer r.index.mu.Unlock()
		return len(r.index.clients) == 1
	}
	for range 1000 {
		r.event("agent:content", "agent/a", "c", "", `{"agentId":"a","content":"`+long+`"}`)
		require.Equal(t, "a", fast.next("agent:content").AgentID)
		if gone() {
			break
		}
	}
	require.Eventually(t, gone, waitLimit, time.Millisecond)
	r.status("a", view.Idle)
	fast.next("agent:status")
	_ = slow.CloseNow()
}

// The reason is that of the client: more waits than is kept.
func TestClientWithoutRoomIsToldWhy(t *testing.T) {
	c := newClient(&Config{QueueFrames: 2, QueueBytes: 100}, auth.Caller{}, "id")
	for range 3 {
		c.show([]byte("{}"))
	}
	<-c.Ending
	require.Equal(t, ws.StatusTryAgainLater, c.Code)
	require.Equal(t, socket.ReasonSlow, c.Reason)
	q := queueOf(2, 10)
	require.True(t, q.Put(socket.Frame{Text: make([]byte, 1000)}), "a single frame may have any size")
	require.False(t, q.Put(socket.Frame{Text: []byte("x")}))
}

func TestIdleSocketsDoNotStarveACaller(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Authenticate, c.Concurrency = callers, 4 })
	r.agent("a", "c", "")
	idle := 1000
	for i := range idle {
		c := newClient(&r.door.config, auth.Caller{}, fmt.Sprint(i))
		require.True(t, r.index.admit(c))
	}
	for range 30 { // of one caller, beside the others
		r.open("Authorization", "Bearer idle.read.all")
	}
	b, _ := r.open("Authorization", "Bearer mira.read.all")
	for range 50 {
		r.status("a", view.Idle)
		b.next("agent:status")
		require.Equal(t, 200, r.do("GET", "/api/agents", "", "Authorization", "Bearer mira.read.all").status)
	}
}

func TestSocketsAreLimited(t *testing.T) {
	r := newRig(t, func(c *Config) { c.ClientLimit = 2 })
	r.open()
	r.open()
	_, response, err := r.dial("/ws")
	require.Error(t, err)
	require.Equal(t, 503, response.StatusCode)
	require.NotEmpty(t, response.Header.Get("Retry-After"))
	require.Equal(t, 200, r.do("GET", "/api/agents", "").status, "requests have limits of their own")
}

func TestHostileFramesEndTheirClientOnly(t *testing.T) {
	r := newRig(t, func(c *Config) { c.FrameLimit = 1000 })
	r.agent("a", "c", "")
	calm, _ := r.open()
	large, _ := r.open()
	large.send(`{"type":"subscribe","agentId":"` + strings.Repeat("x", 2000) + `"}`)
	code, _ := large.closed()
	require.Equal(t, ws.StatusMessageTooBig, code)

	flood, _ := r.open()
	go func() {
		for range frameBurst + 10 {
			if flood.Write(t.Context(), ws.MessageText, []byte(`{"type":"x"}`)) != nil {
				return
			}
		}
	}()
	code, reason := flood.closed()
	require.Equal(t, ws.StatusPolicyViolation, code)
	require.Equal(t, reasonTooMany, reason)

	b, _ := r.open()
	b.send(`{"type":"subscribe","agentId":"` + strings.Repeat("x", 300) + `"}`)
	require.Contains(t, b.next("error").Message, "too long")
	b.send(strings.Repeat(`{"a":`, 150) + `1` + strings.Repeat(`}`, 150))
	b.done()
	r.status("a", view.Idle)
	calm.next("agent:status")
	b.next("agent:status")
}

func TestSubscriptionsOfAClientAreBounded(t *testing.T) {
	r := newRig(t)
	c := newClient(&r.door.config, auth.Caller{}, "id")
	s := &session{handler: r.door, client: c}
	for i := range maxSubscriptions {
		require.NoError(t, s.subscribe(wish{AgentID: fmt.Sprint(i)}))
	}
	require.ErrorContains(t, s.subscribe(wish{AgentID: "one more"}), "too many")
	require.NoError(t, s.subscribe(wish{AgentID: "7"}), "it is known")
	require.NoError(t, s.subscribe(wish{}))
	require.Len(t, c.texts, maxSubscriptions)
}

func TestMemoryOfAnIndexIsBounded(t *testing.T) {
	h := History{Events: 10, Bytes: 4 << 10, TotalBytes: 64 << 10}
	r := newRig(t, func(c *Config) { c.History, c.TextBuffer, c.RowLimit = h, 1<<10, 50 })
	for i := range 500 {
		id := fmt.Sprint("a", i)
		r.agent(id, "c", fmt.Sprint("p", i), func(a *agentRow) {
			if i < 400 {
				a.view.Status = view.Completed
			}
		})
		for range 20 {
			r.text(id, strings.Repeat("x", 300))
			r.status(id, view.Idle)
		}
		r.index.flush()
	}
	require.Len(t, r.index.agents, 50)
	require.Equal(t, 0, r.index.gone.Len(), "agents that have ended make room")
	require.True(t, r.index.full)
	require.LessOrEqual(t, r.index.streams.bytes, h.TotalBytes)
	sum := 0
	for _, s := range r.index.streams.bySubject {
		require.LessOrEqual(t, len(s.events), h.Events)
		bytes := len(s.text)
		for _, e := range s.events {
			bytes += e.size()
		}
		require.Equal(t, bytes, s.bytes)
		sum += bytes
	}
	require.Equal(t, sum, r.index.streams.bytes)
	require.Equal(t, len(r.index.streams.bySubject), r.index.streams.used.Len())
}

func TestManyProjectsAreShownToTheirClientsOnly(t *testing.T) {
	r := newRig(t)
	browsers := map[string]*browser{}
	for i := range 20 {
		project := fmt.Sprint("p", i)
		r.agent("agent-"+project, "crew-"+project, project)
		b, _ := r.open()
		b.send(`{"type":"subscribe-project","projectId":"` + project + `"}`)
		require.Len(t, b.next("init").Agents, 1)
		browsers[project] = b
	}
	for project := range browsers {
		r.status("agent-"+project, view.Idle)
	}
	for project, b := range browsers {
		require.Equal(t, "agent-"+project, b.next("agent:status").AgentID)
		b.done()
	}
}
