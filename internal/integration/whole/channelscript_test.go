package whole

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/processors/delegation"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)

// handOff is the script of the front agent.
func (d *channelWorld) handOff(_ context.Context, step think.Step) (think.Reply, error) {
	d.mu.Lock()
	d.steps = append(d.steps, step)
	d.mu.Unlock()
	in := step.Input()
	said := topics.Text(in.Content)
	switch {
	case in.Role != nil && *in.Role == "tool":
		return think.Say(afterCall(in)), nil
	case strings.HasPrefix(said, "[From: hand:"):
		_, result, _ := strings.Cut(said, "\n")
		if strings.Contains(result, "returned no text") {
			return think.Say(""), nil // nothing to tell
		}
		if _, rest, ok := strings.Cut(result, "again: "); ok {
			return call(delegation.SendTool, map[string]string{"agent_id": d.back, "message": rest})
		}
		return think.Say(result), nil
	}
	if _, task, ok := strings.Cut(said, "delegate "); ok {
		return call(delegation.SendTool, map[string]string{"agent_id": d.back, "message": task})
	}
	if _, id, ok := strings.Cut(said, "cancel "); ok {
		return call(delegation.CancelTool, map[string]string{"callback_id": id})
	}
	if strings.Contains(said, "pay") {
		return call("pay", map[string]string{"to": "harbor"})
	}
	return think.Say("heard: " + said), nil
}

// calls numbers the calls of scripts.
var calls atomic.Int64

// call returns a reply that calls a tool.
func call(tool string, input map[string]string) (think.Reply, error) {
	raw, err := json.Marshal(input)
	id := "call-" + strconv.FormatInt(calls.Add(1), 10)
	return think.Reply{Blocks: []think.Block{{Call: &think.Call{ID: id, Name: tool, Input: raw}}}}, err
}

// afterCall is what the front agent says about the result of a call.
func afterCall(in topics.Message) string {
	content := in.Content.String()
	for _, word := range []string{"too_deep", "unknown_agent", "not_found", "denied", "dispatched", "cancelled", "paid"} {
		if strings.Contains(content, word) {
			return word
		}
	}
	return "result of a call: " + content
}

// holdBack makes the back agent wait for release. It is called before start.
func (d *channelWorld) holdBack() {
	hold := make(chan struct{})
	d.hold, d.release = hold, sync.OnceFunc(func() { close(hold) })
}

// inFlight waits until the back agent works on n tasks.
func (d *channelWorld) inFlight(n int64) {
	d.t.Helper()
	d.eventually(func() bool { return d.begun.Load() >= n })
}

// work is the script of the back agent: it does what it is told. "say X" returns X.
func (d *channelWorld) work(ctx context.Context, step think.Step) (think.Reply, error) {
	d.begun.Add(1)
	select {
	case <-d.hold:
	case <-ctx.Done():
		d.stopped.Add(1)
		return think.Reply{}, context.Cause(ctx)
	}
	said := topics.Text(step.Input().Content)
	if rest, ok := strings.CutPrefix(said, "say "); ok {
		return think.Say(rest), nil
	}
	if said == "nothing" {
		return think.Say(""), nil
	}
	return think.Say("result of " + said), nil
}

func (d *channelWorld) pay(context.Context, tools.Call) (any, error) {
	d.paid.Add(1)
	return "paid", nil
}

// says is the script of an agent that always says the same.
func says(said string) think.Func {
	return func(context.Context, think.Step) (think.Reply, error) { return think.Say(said), nil }
}
