package invoke

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// teller is an agent that asks before it pays. Each run plays the next script; a run that continues plays it after what the
// decisions say: the results of the calls, with the arguments that were run.
type teller struct {
	runs    []*script
	fails   error         // returned by Continue, once
	held    chan struct{} // Continue waits until it is closed; nil: does not wait
	entered chan struct{} // receives a value when Continue waits

	mu       sync.Mutex
	began    []Request
	requests []Request
	asked    []Continuation
	paid     []string // the arguments of the calls that ran
}

// paying are the events of a run that asks whether it may pay.
const paying = `{"type":"message","data":{"text":"Paying."}}
{"type":"tool_call","data":{"id":"t1","name":"pay","input":{"eur":1,"to":"x"}}}
{"type":"interaction_request","data":{"id":"r1","kind":"user_approval","payload":{"toolCallId":"t1","toolCall":{"name":"pay","rawInput":{"eur":1,"to":"x"}}}}}
{"type":"done","data":{"stopReason":"paused"}}`

// payingTwice asks about two calls.
const payingTwice = `{"type":"tool_call","data":{"id":"t1","name":"pay","input":{"eur":1}}}
{"type":"interaction_request","data":{"id":"r1","kind":"user_approval","payload":{"toolCallId":"t1"}}}
{"type":"tool_call","data":{"id":"t2","name":"pay","input":{"eur":2}}}
{"type":"interaction_request","data":{"id":"r2","kind":"user_approval","payload":{"toolCallId":"t2"}}}
{"type":"done","data":{"stopReason":"paused"}}`

const paidEnd = `{"type":"message","data":{"text":"Bye."}}
{"type":"done","data":{}}`

func newTeller(t testing.TB, runs ...string) *teller {
	t.Helper()
	a := &teller{}
	for _, r := range runs {
		a.runs = append(a.runs, scripted(t, r))
	}
	return a
}

func (a *teller) next() *script {
	if len(a.runs) == 0 {
		return &script{}
	}
	s := a.runs[0]
	a.runs = a.runs[1:]
	return s
}

func (a *teller) Invoke(_ context.Context, r Request) (Stream, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, r)
	return &played{script: a.next()}, nil
}

func (a *teller) Continue(ctx context.Context, r Request, c Continuation) (Stream, error) {
	if a.held != nil {
		a.entered <- struct{}{}
		select {
		case <-a.held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.began, a.asked = append(a.began, r), append(a.asked, c)
	if err := a.fails; err != nil {
		a.fails = nil
		return nil, err
	}
	var events []folder.Event
	for _, d := range c.Decisions {
		events = append(events, d.Events()...)
		if !d.Approved() || d.Interaction.ToolUseID == "" {
			continue
		}
		a.paid = append(a.paid, string(d.Interaction.Args))
		output := newObject().text("id", d.Interaction.ToolUseID).text("output", "paid "+string(d.Interaction.Args))
		e, err := folder.NewEvent("tool_result", output.value())
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	next := a.next()
	return &played{script: &script{events: append(events, next.events...), end: next.end, err: next.err}}, nil
}

// desk is a teller behind a door.
type desk struct {
	*site
	agent  *teller
	now    *clock.Fake
	buffer *Buffered
}

func newDesk(t testing.TB, a *teller, change ...func(*BufferConfig)) *desk {
	t.Helper()
	now := clock.NewFake(noon)
	b := newBuffered(t, a, append(change, func(c *BufferConfig) { c.Clock = now })...)
	authenticate := func(r *http.Request) (auth.Caller, error) {
		c := auth.Caller{Subject: r.Header.Get("X-Subject"), MayUse: func(session string) bool { return session != "s-forbidden" }}
		switch r.Header.Get("X-Rights") {
		case "no answers":
			c.Rights = auth.Read | auth.Write
		case "only answers":
			c.Rights = auth.Read | auth.Answer
		}
		return c, nil
	}
	door, err := New(b, Config{Door: auth.Door{Authenticate: authenticate}})
	require.NoError(t, err)
	return &desk{serve(t, door), a, now, b}
}

// body returns a request with messages.
func body(session, messages string) string {
	return `{"session_id":"` + session + `","data":{"inputs":{"messages":[` + messages + `]}}}`
}

// answerOf returns a message with the result of a tool call.
func answerOf(call, output string) string {
	id := ""
	if call != "" {
		id = `"toolCallId":"` + call + `",`
	}
	return `{"role":"tool","content":[{"type":"tool_result",` + id + `"output":` + output + `}]}`
}

const hi = `{"role":"user","content":"pay"}`

var (
	yes = body("s-1", answerOf("", `{"approved":true,"interactionToken":"r1"}`))
	no  = body("s-1", answerOf("", `{"approved":false,"interactionToken":"r1","reason":"too much"}`))
)

func (a *teller) payments() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string{}, a.paid...)
}

func lines(body string) []string { return strings.Split(strings.TrimSuffix(body, "\n"), "\n") }

// typesOf are the types of the events of a stream of lines.
func typesOf(t testing.TB, body string) (types []string) {
	t.Helper()
	for _, line := range lines(body) {
		kind, _ := text(member(topics.Raw(line), "type"))
		types = append(types, kind)
	}
	return types
}

// liveTeller is a teller whose first run is live.
type liveTeller struct {
	*teller
	live *live
}

func (l liveTeller) Invoke(ctx context.Context, r Request) (Stream, error) {
	return l.live.Invoke(ctx, r)
}
