package whole

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	ws "github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/delegation/delegationhttp"
	"github.com/turntable-streams/turntable/processors/gate/gatehttp"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
	"github.com/turntable-streams/turntable/topics"
)

// play uses the agent through its doors, and then looks at what it wrote.
func (c *combined) play() {
	c.t.Helper()
	seen := c.subscribe("chat")
	require.Contains(c.t, c.invoke("plain", "hello there", "application/json"), "heard: hello there")
	require.Contains(c.t, c.invoke("tool", "lookup a berth", "application/json"), "N4 at 18:00")
	streamed := c.invoke("stream", "lookup a berth", "text/event-stream")
	require.Contains(c.t, streamed, "N4 at 18:00")
	require.Equal(c.t, 1, strings.Count(streamed, "stream_end"), streamed)
	if c.on.has(streams) {
		require.Greater(c.t, strings.Count(streamed, "message_delta"), 2, "the text comes in pieces")
	}
	c.pays()
	c.chats(seen)
	if c.on.has(remembers) {
		c.isRemembered()
	}
	if c.on.has(budgets) {
		c.isOverBudget()
	}
	if c.on.has(delegates) {
		c.handsOff()
	}
	if c.on.has(hasChannels) {
		c.isWrittenTo()
	}
	if c.on.has(hasPeers) {
		require.Contains(c.t, c.invoke("peer", "peer do it", "application/json"), "the peer did it")
	}
	for n := range 4 {
		require.Contains(c.t, c.invoke("long", fmt.Sprintf("hello %d", n), "application/json"), fmt.Sprintf("heard: hello %d", n))
	}
	if c.on.has(compacts) {
		c.mu.Lock()
		require.Positive(c.t, c.asked, "the compactor is asked")
		c.mu.Unlock()
	}
	c.promises()
}

// post sends a request and returns the response's status and body.
func (c *combined) post(path, accept, body string) (int, string) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.ctx, http.MethodPost, c.url+path, strings.NewReader(body))
	require.NoError(c.t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", accept)
	return c.do(r)
}

func (c *combined) do(r *http.Request) (int, string) {
	c.t.Helper()
	answer, err := http.DefaultClient.Do(r)
	require.NoError(c.t, err)
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	require.NoError(c.t, err)
	return answer.StatusCode, string(got)
}

// invoke sends a message and returns the whole response.
func (c *combined) invoke(session, text, accept string) string {
	c.t.Helper()
	status, body := c.post(agent.InvokePath, accept,
		fmt.Sprintf(`{"session_id":%q,"data":{"inputs":{"messages":[{"role":"user","content":%q}]}}}`, session, text))
	require.Equal(c.t, http.StatusOK, status, body)
	return body
}

// pays approves a payment where a person is asked.
func (c *combined) pays() {
	c.t.Helper()
	before := c.paid()
	done := make(chan string, 1)
	go func() { done <- c.invoke("pay", "pay for it", "text/event-stream") }()
	if c.on.has(asksPeople) {
		r, err := http.NewRequestWithContext(c.ctx, http.MethodGet, c.url+gatehttp.GatesPath+"?session_id=pay&status=pending&wait=50s", nil)
		require.NoError(c.t, err)
		status, body := c.do(r)
		require.Equal(c.t, http.StatusOK, status, body)
		var list struct {
			Gates []struct {
				ID     string `json:"gate_id"`
				Digest string `json:"args_sha256"`
			} `json:"gates"`
		}
		require.NoError(c.t, json.Unmarshal([]byte(body), &list))
		require.Len(c.t, list.Gates, 1, body)
		require.Equal(c.t, before, c.paid(), "nothing is paid without the approval")
		status, body = c.post(gatehttp.GatesPath+"/"+list.Gates[0].ID+"/decision?wait=20s", "application/json",
			fmt.Sprintf(`{"verdict":"approve","args_sha256":%q}`, list.Gates[0].Digest))
		require.Equal(c.t, http.StatusOK, status, body)
	}
	select {
	case body := <-done:
		require.Contains(c.t, body, `\"paid\":700`)
	case <-c.ctx.Done():
		require.Fail(c.t, "the payment is not answered")
	}
	require.Equal(c.t, before+1, c.paid())
}

// paid returns how many calls of tools there were.
func (c *combined) paid() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls)
}

// subscribe returns the frames of a session on the WebSocket, as texts.
func (c *combined) subscribe(session string) <-chan string {
	c.t.Helper()
	socket, response, err := ws.Dial(c.ctx, c.url+agent.WebSocketPath, nil)
	require.NoError(c.t, err)
	if response.Body != nil {
		_ = response.Body.Close()
	}
	require.NoError(c.t, socket.Write(c.ctx, ws.MessageText, fmt.Appendf(nil, `{"type":"subscribe","session_id":%q,"last_event_id":"?"}`, session)))
	frames := make(chan string, 256)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			_, frame, err := socket.Read(c.ctx)
			if err != nil {
				return
			}
			frames <- string(frame)
		}
	}()
	c.t.Cleanup(func() {
		_ = socket.CloseNow()
		<-ended
	})
	c.frame(frames, `"resumed"`) // an ID that is unknown is answered when the subscription has begun
	return frames
}

// frame returns the next frame with a text in it.
func (c *combined) frame(frames <-chan string, text string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, waitLimit)
	defer cancel()
	for {
		f, err := next(ctx, frames, "the WebSocket that has "+text)
		require.NoError(c.t, err)
		if strings.Contains(f, text) {
			return f
		}
	}
}

// chats sends a message whose answer is seen on the WebSocket, and delivered where deliveries are on.
func (c *combined) chats(frames <-chan string) {
	c.t.Helper()
	reply := ""
	if c.on.has(delivers) {
		reply = `,"reply":{"callbackService":"harbor","bearerToken":"t"}`
	}
	status, body := c.post(turnhttp.ChatPath, "application/json", `{"session_id":"chat","user_id":"mira","content":"hello chat"`+reply+`}`)
	require.Equal(c.t, http.StatusOK, status, body)
	c.frame(frames, "heard: hello chat")
	if c.on.has(delivers) {
		got, err := next(c.ctx, c.callback, "the delivery")
		require.NoError(c.t, err)
		require.Contains(c.t, got, "heard: hello chat")
	}
}

// isRemembered ends a session of a user, whose next session knows what the first one said.
func (c *combined) isRemembered() {
	c.t.Helper()
	// A session with an open turn does not end: its model is heard before its turn ends.
	c.say("first", "otto", "remember the berth is N4", "message-output")
	require.NoError(c.t, put(c.ctx, c.world, c.catalog.SessionControl, "first", topics.Control{Action: topics.ActionEnd}, ""))
	for n := 0; ; n++ {
		require.Less(c.t, n, 500, "the memory never comes")
		if strings.Contains(c.say(fmt.Sprintf("later-%d", n), "otto", "recall it", "known: "), "the berth is N4") {
			return
		}
	}
}

// isOverBudget asks until the budget of the user is known to be spent. Then the model is not asked any more.
func (c *combined) isOverBudget() {
	c.t.Helper()
	c.say("spends", "spender", "buy a ship", "heard: buy a ship")
	for n := 0; ; n++ { // the sums are some milliseconds old
		require.Less(c.t, n, 500, "the budget has no end")
		if strings.Contains(c.say(fmt.Sprintf("over-%d", n), "spender", "hello", "message-output"), string(topics.CodeOverBudget)) {
			return
		}
	}
}

// say sends a message and returns the frame with the answer, in which want is.
func (c *combined) say(session, user, text, want string) string {
	c.t.Helper()
	frames := c.subscribe(session)
	status, body := c.post(turnhttp.ChatPath, "application/json", fmt.Sprintf(`{"session_id":%q,"user_id":%q,"content":%q}`, session, user, text))
	require.Equal(c.t, http.StatusOK, status, body)
	return c.frame(frames, want)
}

// handsOff hands a task off. The conversation belongs to no channel, so the result is announced in the session, where its page sees
// it, and the door shows it.
func (c *combined) handsOff() {
	c.t.Helper()
	seen := c.subscribe("front")
	require.Contains(c.t, c.invoke("front", "delegate it", "application/json"), "will be announced in this conversation")
	require.Contains(c.t, c.frame(seen, "announced: "), "N4 at 18:00")
	r, err := http.NewRequestWithContext(c.ctx, http.MethodGet, c.url+delegationhttp.DelegationsPath+"?session_id=front", nil)
	require.NoError(c.t, err)
	_, body := c.do(r)
	require.Contains(c.t, body, `"completed"`)
}

// promises requires what holds whatever is on: one output for each message, one result for each call, one batch for each turn,
// and no dead letter.
func (c *combined) promises() {
	c.t.Helper()
	w := c.world
	// ids counts the records of a topic by ID: at least once, a record may be repeated with the same one.
	ids := func(topic string) map[string]bool {
		seen := map[string]bool{}
		for _, r := range w.all(topic) {
			if r.Value != nil {
				seen[headerOf(r, topics.HeaderID)] = true
			}
		}
		return seen
	}
	var messages int
	seen := map[string]bool{}
	for _, r := range w.all(c.catalog.MessageInput.Name()) {
		m := c.catalog.MessageInput.Codec().Unmarshal(r.Value).Value
		if id := headerOf(r, topics.HeaderID); m.Role != nil && *m.Role == "user" && (id == "" || !seen[id]) {
			messages, seen[id] = messages+1, true
		}
	}
	c.eventually(func() bool { return len(ids(c.catalog.MessageOutput.Name())) >= messages })
	require.Len(c.t, ids(c.catalog.MessageOutput.Name()), messages, "one output for each message")
	for _, o := range valuesOf(w, c.catalog.MessageOutput) {
		if o.Error != nil {
			require.Equal(c.t, topics.CodeOverBudget, o.Error.Code, o.Error.Message)
			require.True(c.t, c.on.has(budgets))
		}
	}
	results := map[string]bool{}
	for _, r := range valuesOf(w, c.catalog.ToolUseResult) {
		require.NotContains(c.t, string(r.Result), "error")
		results[*r.ToolUseID] = true
	}
	require.Len(c.t, results, len(ids(c.catalog.ToolUse.Name())), "one result for each call")
	c.mu.Lock()
	for call, n := range c.calls {
		require.Equal(c.t, 1, n, "%s ran once", call)
	}
	c.mu.Unlock()
	c.eventually(func() bool { return len(ids(c.catalog.BatchMessages.Name())) >= messages })
	require.Len(c.t, ids(c.catalog.BatchMessages.Name()), messages, "one batch for each turn")
	for _, g := range must(must(agent.New(c.agent, c.config())).Graphs()) {
		require.Empty(c.t, w.all(string(g.Group())+"-dlq"), "%s has no dead letter", g.Group())
	}
}
