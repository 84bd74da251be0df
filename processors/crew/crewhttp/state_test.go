package crewhttp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/processors/internal/socket"
)

// busy is an agent with as many tool calls as are shown, whose texts have words that secrets begin with.
func busy(a *agentRow) {
	content := strings.Repeat("The key of the task is to ask for a token, and then sk the basic: x := y.z(1, 2)\n", 100)[:4<<10]
	a.view.OutputPreview = content[:4000]
	for j := range 50 {
		a.view.ToolCalls = append(a.view.ToolCalls, view.ToolCall{ToolCallID: fmt.Sprint(j), Title: "Run it", Content: content})
	}
}

// A crew that works hard has more tool calls than may wait for a client: it can connect nevertheless, sees the newest ones, and
// the others do not wait for it.
func TestClientOfManyBusyAgentsConnectsQuickly(t *testing.T) {
	r := newRig(t)
	for i := range 50 {
		r.agent(fmt.Sprintf("a%03d", i), "c", "p", busy)
		r.status(fmt.Sprintf("a%03d", i), view.Running) // newer than its row: it follows the init frame
	}
	b, hello := r.open()
	require.Len(t, hello.Agents, 50)
	require.Less(t, len(hello.raw), 4<<20)
	for _, a := range hello.Agents {
		require.NotEmpty(t, a.ToolCalls)
		require.Equal(t, "49", a.ToolCalls[len(a.ToolCalls)-1].ToolCallID)
	}
	for range 50 {
		b.next("agent:status")
	}
	b.send(`{"type":"subscribe-project","projectId":"p"}`)
	b.next("init")
	for range 50 {
		b.next("agent:status")
	}
	b.done()
	require.Equal(t, 50, strings.Count(r.do("GET", "/api/agents/a000", "").body, "toolCallId"), "one agent has all of them")
}

// The init frame may have any size, and what follows it is limited as without it.
func TestInitFrameDoesNotCountAsWaiting(t *testing.T) {
	q := queueOf(3, 10)
	put := func(bytes int) bool { return q.Put(socket.Frame{Text: make([]byte, bytes)}) }
	state := &replay{}
	state.add(make([]byte, 1000))
	q.replay(state)
	require.True(t, put(10))
	require.False(t, put(1))
	frame, ok := q.take()
	require.True(t, ok)
	require.Len(t, frame, 1000)
	require.False(t, put(1))
	_, _ = q.take()
	require.True(t, put(9))
	require.True(t, put(1))
	require.False(t, put(1))
}

// Words that only look like a part of a secret do not make the patterns run, which takes 40 times as long as to look for hints.
func TestOrdinaryTextIsNotSearchedForSecrets(t *testing.T) {
	require.False(t, mayHaveSecret("The key of the task is to ask for a token, and then sk the secret: x := y.z(1, 2)"))
	require.Equal(t, "Ba\u017fic "+redacted, Redact("Ba\u017fic abcdefghijklmnop1234"))
	require.JSONEq(t, `{"a":"x://u:`+redacted+`@h"}`, string(redactJSON([]byte(`{"a":"x:\/\/u:pw@h"}`))))
}

// A client that changes its project all the time waits itself; the others do not.
func TestClientThatAsksForTheStateAllTheTimeWaits(t *testing.T) {
	r := newRig(t)
	b, _ := r.open()
	go func() {
		for range heavyBurst + 1 {
			if b.Write(t.Context(), 1, []byte(`{"type":"subscribe-project","projectId":"p"}`)) != nil {
				return
			}
		}
	}()
	for range heavyBurst {
		b.next("init")
	}
	require.NoError(t, r.clock.WaitTickers(t.Context(), 1))
	r.clock.Advance(time.Second / heavyPerSecond)
	b.next("init")
}
