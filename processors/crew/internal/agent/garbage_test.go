package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

const recordLimit = 1 << 20

// value draws a JSON value of any shape and size.
func value(t *rapid.T, depth int) any {
	switch rapid.IntRange(0, 8).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.SampledFrom([]any{0, 1, -1, 1e300, int64(1) << 62, 1.5}).Draw(t, "number")
	case 3, 4:
		unit := rapid.SampledFrom([]string{"x", "\u0001", "\u20ac", "\"", "⟦⟦ ", "⟦⟦ LOCK_FILE {\"filePath\":\"a\"} ⟧⟧", "\n"}).Draw(t, "unit")
		return strings.Repeat(unit, rapid.SampledFrom([]int{0, 1, 7, 100, 5000, 60_000}).Draw(t, "times"))
	case 5:
		return rapid.SampledFrom([]string{"agent_message_chunk", "tool_call", "plan", "usage_update", "s1", agentID}).Draw(t, "word")
	case 6, 7:
		list := make([]any, rapid.IntRange(0, 3).Draw(t, "len"))
		if depth > 0 {
			for i := range list {
				list[i] = value(t, depth-1)
			}
		}
		return list
	default:
		object := map[string]any{}
		if depth > 0 {
			for range rapid.IntRange(0, 4).Draw(t, "members") {
				object[rapid.SampledFrom(memberNames).Draw(t, "name")] = value(t, depth-1)
			}
		}
		return object
	}
}

var memberNames = []string{
	"sessionUpdate", "content", "type", "text", "toolCallId", "title", "kind", "status", "rawInput", "locations", "entries", "used",
	"size", "cost", "availableCommands", "configOptions", "availableModes", "currentModeId", "agent_id", "crew_id", "project_id",
	"role_id", "role_name", "model", "provider", "host", "cwd", "repository", "loadSession", "optionId", "name",
}

// bodyMembers are the members of the bodies of all inputs.
var bodyMembers = map[string][]string{
	"due": {"at_ms"}, "prompt": {"text", "priority", "from_id", "blocks"}, "note": {"text"}, "refresh": {"text", "digest"},
	"interrupt": {"text", "from_id"}, "clear_queue": nil, "pause": {"paused"}, "autopilot": {"on"}, "task": {"task"},
	"terminate": {"reason"}, "restart": {"refused", "manual", "prompt"},
	"gate_ended":   {"gate_id", "status", "cause", "option_id", "by"},
	"host_started": {"host", "epoch"}, "receipt": {"action_id", "failed", "error"},
	"host_beat": {"run"}, "started": {"run", "capabilities", "info"},
	"session_ready": {"run", "session_id", "resumed", "modes", "options"},
	"start_failed":  {"run", "stage", "error", "process"},
	"updates":       {"run", "session_id", "replay", "updates", "sent_ms"},
	"permission":    {"run", "request_id", "session_id", "tool_call", "options", "method", "args"},
	"turn_ended":    {"run", "prompt_id", "stop_reason", "error", "usage"},
	"problem":       {"run", "message"}, "exited": {"run", "code", "signal", "error", "stopped"},
	"spawn": {
		"member", "task", "parent_id", "level", "lead", "autopilot", "session_id", "prompt", "no_restart", "max_restarts",
	},
}

// body draws a body of a kind. Often a member is what the row expects.
func body(t *rapid.T, kind string, s *State) topics.Raw {
	if rapid.IntRange(0, 20).Draw(t, "odd") == 0 {
		raw, err := json.Marshal(value(t, 3))
		require.NoError(t, err)
		return raw
	}
	right := map[string]any{
		"run": s.GetProcess().GetRun(), "prompt_id": s.GetTurn().GetPromptId(), "session_id": s.GetSessionId(), "host": hostID, "epoch": 1 << 40,
		"action_id": s.GetProcess().GetRun(), "process": true, "on": true, "paused": false, "updates": []any{value(t, 3), value(t, 3)},
		"text": value(t, 0), "blocks": []any{value(t, 1)},
		"member": map[string]any{"agent_id": agentID, "crew_id": crewID, "host": hostID, "role_name": value(t, 0)},
	}
	object := map[string]any{}
	for _, name := range bodyMembers[kind] {
		switch v, known := right[name]; {
		case known && rapid.IntRange(0, 5).Draw(t, "right") > 0:
			object[name] = v
		case rapid.Bool().Draw(t, "any"):
			object[name] = value(t, 3)
		}
	}
	raw, err := json.Marshal(object, json.Deterministic(true))
	require.NoError(t, err)
	if len(raw) > recordLimit-10_000 {
		return nil
	}
	return raw
}

// Whatever is in the topic, a step does not panic, and what it writes fits into records.
func TestGarbageDoesNotBreakARow(t *testing.T) {
	kinds := slices.Sorted(maps.Keys(bodyMembers))
	require.Len(t, kinds, len(handlers))
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.spawned.Member.Repository = repo
		w.spawn()
		if rapid.Bool().Draw(t, "ready") {
			w.ready("s1", false)
		}
		for i := range rapid.IntRange(1, 60).Draw(t, "n") {
			kind := rapid.SampledFrom(kinds).Draw(t, "input")
			in := topics.CrewInput{InputID: fmt.Sprint("garbage/", i), Kind: kind, Body: body(t, kind, w.state())}
			if rapid.Bool().Draw(t, "from a host") {
				w.numbers["host"]++
				in.From, in.Number = "host/"+hostID, w.epoch*mailbox.PerEpoch+w.numbers["host"]
			}
			w.now = w.now.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "seconds")) * time.Second)
			w.fits(w.apply(logged{in, w.now}))
		}
	})
}

// fits checks that the row and what a step has written fit into records.
func (w *world) fits(effects []mailbox.Effect) {
	w.tb.Helper()
	require.Less(w.tb, len(w.row), recordLimit-4096)
	for _, e := range effects {
		size := 0
		switch e := e.(type) {
		case mailbox.Mail:
			size = len(e.Input.Body)
		case topics.CrewAction:
			size = len(e.Body)
		case topics.CrewEvent:
			size = len(e.Fields)
		case mailbox.Ask:
			size = len(e.Request.Args) + len(e.Request.Options)
		}
		require.Less(w.tb, size, recordLimit-4096, "%T", e)
	}
}

// What a row keeps of inputs that no crew and no host writes leaves room for what the agent does.
func TestOversizedNamesDoNotFillARow(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	fill := func(w *world) {
		w.crew(normal("go"))
		for i := range 300 {
			raw := fmt.Sprintf(`{"sessionUpdate":"tool_call","toolCallId":"%d","title":"%s","rawInput":"%s"}`, i, long(500), long(2000))
			w.updates(false, topics.Raw(raw)).fits(w.last)
		}
		w.say(strings.Repeat("\u20ac", 20_000)).fits(w.last)
		for range 100 {
			w.crew(crewbody.Note{Text: long(10_000)}).fits(w.last)
			w.crew(normal(long(3_000))).fits(w.last)
			w.crew(crewbody.Prompt{Text: long(3_000), Priority: true}).fits(w.last)
		}
		w.crew(crewbody.Refresh{Text: long(40_000), Digest: "d"}).fits(w.last)
	}
	w := newWorld(t)
	w.spawned.Member.Cwd, w.spawned.Member.RoleName = long(700_000), long(200_000)
	w.spawn().fits(w.last)
	require.Nil(t, w.state(), "nobody is spawned")
	w.spawned.Member.Cwd, w.spawned.Member.RoleName, w.spawned.ParentID = "/src", "Dev", long(900_000)
	w.spawn().fits(w.last)
	require.Nil(t, w.state(), "nobody is spawned")

	w = newWorld(t)
	w.spawned.Task, w.spawned.Prompt = long(200_000), long(200_000)
	w.start()
	fill(w)
	w.host(crewbody.TurnEnded{Run: w.run(), PromptID: w.state().Turn.GetPromptId(), StopReason: long(900_000)}).fits(w.last)

	w = newWorld(t).spawn()
	w.host(crewbody.SessionReady{Run: w.run(), SessionID: long(900_000)})
	w.fits(w.last)
	require.Empty(t, w.state().SessionId)

	w = newWorld(t).start().crew(normal("go"))
	for range 5 {
		w.crew(crewbody.Prompt{Text: "x", FromID: long(190_000)}).fits(w.last)
		w.crew(crewbody.Prompt{Text: "x", FromID: long(190_000), Priority: true}).fits(w.last)
		w.crew(crewbody.Refresh{Text: "x", Digest: long(900_000)}).fits(w.last)
	}
	require.Less(t, len(w.row), 512<<10)
}
