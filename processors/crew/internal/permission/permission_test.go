package permission

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

func TestP01_AutopilotSelectsTheFirstAllowOnceWithoutAnEvent(t *testing.T) {
	h := newHarness(t)
	h.autopilot = true
	for _, command := range []string{"go test ./...", "rm -rf build"} {
		effects := h.ask(running(command, command, "allow_always reject_once "+secondAllow))
		require.Len(t, effects, 1, "no gate and no event")
		require.Equal(t, []crewbody.Answer{{
			AgentID: agentID, Run: run, RequestID: command, OptionID: "o2-allow_once", By: "autopilot",
		}}, h.answers(effects))
		require.Empty(t, h.ask(running(command, command, allOptions)), "a repeat is not answered again")
	}
	require.Empty(t, h.permissions().Open())
}

// What is dangerous is never approved without a person.
func TestDangerousRequestAsksUnderAutopilot(t *testing.T) {
	h := newHarness(t)
	h.autopilot = true
	effects := h.ask(running("r1", "rm -rf /", allOptions))
	require.Empty(t, h.answers(effects))
	asked := events(effects, "agent:permission_request")
	require.Len(t, asked, 1)
	require.Equal(t, true, asked[0]["dangerous"])
	require.Equal(t, view.Time(noon.Add(time.Minute).UnixMilli()), asked[0]["expiresAt"])
	require.Len(t, gates(effects), 1)
	require.Len(t, h.answers(h.ask(running("r2", "ls", allOptions))), 1, "any other request is approved at once")
	answers := h.answers(h.end(ended("r1", topics.GateTimedOut, topics.CauseDeadline)))
	require.Len(t, answers, 1)
	require.Empty(t, answers[0].OptionID, "denied after a minute")
	h.ask(running("r3", "rm -rf /", allOptions))
	require.Equal(t, "o1-allow_once", h.answers(h.end(approved("r3")))[0].OptionID)
}

func TestP02_AutopilotWithoutAllowOnceCancels(t *testing.T) {
	h := newHarness(t)
	h.autopilot = true
	for _, kinds := range []string{neverOnce, "", "allow_always"} {
		answers := h.answers(h.ask(running("r"+kinds, "ls", kinds)))
		require.Len(t, answers, 1)
		require.Empty(t, answers[0].OptionID, kinds)
		require.Equal(t, "autopilot", answers[0].By)
	}
}

func TestP03_OnePermissionRequestEventAndTheAgentWaits(t *testing.T) {
	h := newHarness(t)
	effects := h.ask(running("r1", "npm test", allOptions))
	require.Empty(t, h.answers(effects))
	require.Equal(t, []map[string]any{{
		"agentId": agentID,
		"request": map[string]any{
			"id": gateOf("r1"), "toolName": "Run a command", "arguments": map[string]any{"command": "npm test"},
			"timestamp": view.Time(noon.UnixMilli()),
		},
		"dangerous": false,
		"expiresAt": view.Time(noon.Add(time.Minute).UnixMilli()),
		"options": []any{
			map[string]any{"optionId": "o0-allow_always", "name": "Option 0", "kind": "allow_always"},
			map[string]any{"optionId": "o1-allow_once", "name": "Option 1", "kind": "allow_once"},
			map[string]any{"optionId": "o2-reject_once", "name": "Option 2", "kind": "reject_once"},
			map[string]any{"optionId": "o3-reject_always", "name": "Option 3", "kind": "reject_always"},
		},
		"preview": map[string]any{"icon": "terminal", "summary": "npm test", "args": "{\n  \"command\": \"npm test\"\n}"},
	}}, events(effects, "agent:permission_request"))
	asked := gates(effects)
	require.Len(t, asked, 1)
	g := asked[0]
	require.Equal(t, topics.GateRequest{
		GateID: gateOf("r1"), SessionID: agentID, Kind: topics.GatePermission, Tool: "execute:npm test", ToolUseID: "call-r1",
		Args: g.Args, Message: "Run a command", Options: g.Options,
		Origin: topics.GateOrigin{Agent: "developer", Via: "crew"}, ExpiresMS: noon.Add(time.Minute).UnixMilli(),
	}, g)
	require.JSONEq(t, `{"tool":"Run a command","title":"Run a command","kind":"execute","arguments":{"command":"npm test"}}`, string(g.Args))
	require.Empty(t, h.ask(running("r1", "npm test", allOptions)), "a repeat is not asked again")
	require.Empty(t, h.ask(crewbody.Permission{Run: "an earlier run", RequestID: "r9"}), "the process that asked is gone")
	require.Len(t, h.permissions().Open(), 1)
}

// Deny selects an option that rejects once, so that the agent knows that a person said no. An earlier crew server cancelled.
func TestP04_ApproveSelectsAllowOnceAndDenyDoesNotExecute(t *testing.T) {
	for _, c := range []struct {
		name, kinds string
		status      topics.GateStatus
		option      string
		selected    string
	}{
		{"approve", allOptions, topics.GateApproved, "", "o1-allow_once"},
		{"approve, first of two", secondAllow, topics.GateApproved, "", "o0-allow_once"},
		{"approve a chosen option", allOptions, topics.GateApproved, "o0-allow_always", "o0-allow_always"},
		{"approve an option that was not offered", allOptions, topics.GateApproved, "o7", "o1-allow_once"},
		{"approve without allow_once", neverOnce, topics.GateApproved, "", ""},
		{"approve without options", "", topics.GateApproved, "", ""},
		{"deny", allOptions, topics.GateDenied, "", "o2-reject_once"},
		{"deny for good", allOptions, topics.GateDenied, "o3-reject_always", "o3-reject_always"},
		{"deny with an option that allows", allOptions, topics.GateDenied, "o1-allow_once", "o2-reject_once"},
		{"deny without reject_once", onlyAllow, topics.GateDenied, "", ""},
		{"time out", allOptions, topics.GateTimedOut, "", ""},
		{"cancel", allOptions, topics.GateCancelled, "o1-allow_once", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t)
			h.ask(running("r1", "ls", c.kinds))
			effects := h.end(crewbody.GateEnded{
				GateID: gateOf("r1"), Status: c.status, Cause: topics.CauseHuman, OptionID: c.option, By: "ines",
			})
			require.Equal(t, []crewbody.Answer{{
				AgentID: agentID, Run: run, RequestID: "r1", OptionID: c.selected, By: "ines",
			}}, h.answers(effects))
			require.Equal(t, []map[string]any{{
				"agentId": agentID, "requestId": gateOf("r1"), "outcome": string(c.status), "by": "ines",
			}}, events(effects, "agent:permission_resolved"))
		})
	}
}

func TestFilesAndTerminalsAreAllowedOrNot(t *testing.T) {
	writing := crewbody.Permission{
		Run: run, RequestID: "w1", Method: "fs/write_text_file", Args: topics.Raw(`{"path":"/repo/main.go"}`),
	}
	for status, allowed := range map[topics.GateStatus]bool{
		topics.GateApproved: true, topics.GateDenied: false, topics.GateTimedOut: false, topics.GateCancelled: false,
	} {
		h := newHarness(t)
		asked := h.ask(writing)
		require.Equal(t, "fs/write_text_file", events(asked, "agent:permission_request")[0]["request"].(map[string]any)["toolName"])
		require.Equal(t, allowed, h.answers(h.end(ended("w1", status, topics.CauseHuman)))[0].Allowed, status)
	}
	h := newHarness(t)
	h.autopilot = true
	require.True(t, h.answers(h.ask(writing))[0].Allowed)
}

// A session cancel and the end of the process both cancel what is open; a timer or a person who is late changes nothing.
func TestCancelledRequestsAreNotAnsweredLater(t *testing.T) {
	for _, alive := range []bool{true, false} {
		h := newHarness(t)
		for _, id := range []string{"r1", "r2", "r3"} {
			h.ask(running(id, "ls", allOptions))
		}
		effects := h.cancel(alive)
		var withdrawn []string
		for _, g := range gates(effects) {
			require.Equal(t, topics.CauseParentEnded, g.Withdrawn)
			require.Equal(t, agentID, g.SessionID)
			withdrawn = append(withdrawn, g.GateID)
		}
		require.Equal(t, []string{gateOf("r1"), gateOf("r2"), gateOf("r3")}, withdrawn)
		require.Len(t, events(effects, "agent:permission_resolved"), 3)
		if !alive {
			require.Empty(t, h.answers(effects), "there is no process to answer")
		} else {
			require.Len(t, h.answers(effects), 3)
		}
		h.now = h.now.Add(time.Hour)
		require.Empty(t, h.end(ended("r1", topics.GateTimedOut, topics.CauseDeadline)))
		require.Empty(t, h.end(approved("r2")))
		require.Empty(t, h.end(ended("r3", topics.GateCancelled, topics.CauseParentEnded)), "the outcome of the withdrawal")
		require.Empty(t, h.cancel(alive), "nothing is open")
		require.Empty(t, h.ask(running("r1", "ls", allOptions)), "a repeat of the request")
	}
}

func TestCancellingAnswersAllOpenRequestsOnce(t *testing.T) {
	h := newHarness(t)
	for n := range 5 {
		h.ask(running(fmt.Sprint("r", n), "ls", allOptions))
	}
	h.end(approved("r2"))
	var cancelled []string
	for _, a := range h.answers(h.cancel(true)) {
		require.Empty(t, a.OptionID)
		require.Equal(t, "parent_ended", a.By)
		cancelled = append(cancelled, a.RequestID)
	}
	require.Equal(t, []string{"r0", "r1", "r3", "r4"}, cancelled, "r2 was answered before")
	require.Empty(t, h.permissions().Open())
}

func TestP07_AnsweringOneByIDLeavesTheOtherWithItsOwnDeadline(t *testing.T) {
	h := newHarness(t)
	h.ask(running("r1", "ls", allOptions))
	h.now = h.now.Add(20 * time.Second)
	h.ask(running("r2", "pwd", allOptions))
	answers := h.answers(h.end(approved("r2")))
	require.Len(t, answers, 1)
	require.Equal(t, "r2", answers[0].RequestID)
	open := h.permissions().Open()
	require.Len(t, open, 1)
	require.Equal(t, gateOf("r1"), open[0].ID)
	require.Equal(t, view.Time(noon.Add(time.Minute).UnixMilli()), open[0].ExpiresAt)
}

func TestP08_AnAnswerWithoutIDIsAboutTheNewest(t *testing.T) {
	require.Empty(t, Newest(nil))
	h := newHarness(t)
	h.ask(running("r1", "ls", allOptions))
	h.now = h.now.Add(time.Second)
	h.ask(running("r2", "ls", allOptions))
	h.ask(running("r3", "ls", allOptions)) // at the same time
	require.Equal(t, gateOf("r3"), Newest(h.permissions().Open()))
	h.end(approved("r3"))
	require.Equal(t, gateOf("r2"), Newest(h.permissions().Open()), "the newest that is still open")
}

func TestAutopilotDoesNotChangeOpenRequests(t *testing.T) {
	h := newHarness(t)
	h.ask(running("r1", "ls", allOptions))
	h.autopilot = true
	require.Len(t, h.answers(h.ask(running("r2", "ls", allOptions))), 1)
	require.Len(t, h.permissions().Open(), 1, "the first request keeps waiting")
	require.Len(t, h.answers(h.end(approved("r1"))), 1)
}

func TestTooManyRequestsAreCancelledAtOnce(t *testing.T) {
	h := newHarness(t)
	ask := func(n int, padding int) (answers []crewbody.Answer, problems int) {
		effects := h.ask(running(fmt.Sprint("r", n), "echo "+strings.Repeat("x", padding), allOptions))
		return h.answers(effects), len(events(effects, "agent:problem"))
	}
	for n := range maxOpen {
		answers, problems := ask(n, 10)
		require.Empty(t, answers)
		require.Zero(t, problems)
	}
	answers, problems := ask(maxOpen, 10)
	require.Len(t, answers, 1)
	require.Empty(t, answers[0].OptionID)
	require.Equal(t, 1, problems)

	h = newHarness(t)
	for n := range 2 * maxOpen { // large ones
		ask(n, 3000)
	}
	require.Less(t, len(h.permissions().Open()), maxOpen)
	require.LessOrEqual(t, h.permissions().size(), maxOpenBytes)
}

// The event of a long request says that it is short. The gate has the whole, of which the event has the digest.
func TestLongRequestIsWholeInItsGateAndMarkedInItsEvent(t *testing.T) {
	diff := `{"toolCallId":"c","title":"Edit","kind":"edit","rawInput":{"path":"a"},"content":[{"type":"diff","path":"a","newText":"%s; touch x"}]}`
	for name, req := range map[string]crewbody.Permission{
		"command": running("r1", strings.Repeat("a", 3000)+"; touch x", allOptions),
		"title":   {Run: run, RequestID: "r1", ToolCall: topics.Raw(`{"title":"` + strings.Repeat("a", 3000) + `; touch x"}`)},
		"diff":    {Run: run, RequestID: "r1", ToolCall: topics.Raw(fmt.Sprintf(diff, strings.Repeat("a", 3000)))},
		"file": {
			Run: run, RequestID: "r1", Method: "fs/write_text_file",
			Args: topics.Raw(`{"path":"a","content":"` + strings.Repeat("a", 100_000) + `; touch x","content_sha256":"1"}`),
		},
	} {
		h := newHarness(t)
		effects := h.ask(req)
		require.Len(t, gates(effects), 1, name)
		args := gates(effects)[0].Args
		require.Contains(t, string(args), "; touch x", name)
		request := events(effects, "agent:permission_request")[0]["request"].(map[string]any)
		require.Equal(t, true, request["truncated"], name)
		require.EqualValues(t, len(args), request["bytes"], name)
		require.Equal(t, topics.ArgsSHA256(args), request["argsSha256"], name)
		open := h.permissions().Open()[0]
		require.True(t, open.Truncated, name)
		require.Equal(t, topics.ArgsSHA256(args), open.ArgsSHA256, name)
	}
}

func TestShortRequestIsWholeInItsEvent(t *testing.T) {
	for name, req := range map[string]crewbody.Permission{
		"command": running("r1", strings.Repeat("a", 1900)+"; touch x", allOptions),
		"diff": {Run: run, RequestID: "r1", ToolCall: topics.Raw(
			`{"title":"Edit","rawInput":{"path":"a"},"content":[{"type":"diff","path":"a","newText":"; touch x"}]}`)},
		"file": {
			Run: run, RequestID: "r1", Method: "fs/write_text_file", Args: topics.Raw(`{"path":"a","content":"; touch x","content_sha256":"1"}`),
		},
	} {
		request := events(newHarness(t).ask(req), "agent:permission_request")[0]["request"]
		require.Contains(t, fmt.Sprint(request), "; touch x", name)
		require.NotContains(t, request, "truncated", name)
	}
}

func TestRequestThatNoOneCanSeeWholeIsCancelled(t *testing.T) {
	for name, call := range map[string]string{
		"too large": `{"rawInput":{"command":"` + strings.Repeat("a", maxArgs) + `"}}`,
		"shortened": `{"rawInput":{"start":"a"},"_meta":{"` + crewbody.Shortened + `":1}}`,
		"no object": `7`,
	} {
		h := newHarness(t)
		effects := h.ask(crewbody.Permission{Run: run, RequestID: "r1", ToolCall: topics.Raw(call), Options: options(allOptions)})
		require.Empty(t, gates(effects), name)
		require.Len(t, events(effects, "agent:problem"), 1, name)
		require.Empty(t, h.answers(effects)[0].OptionID, name)
	}
}

func TestLongArgumentsAreNotCutInTheNameOfAGrant(t *testing.T) {
	h := newHarness(t)
	g := gates(h.ask(running("r1", strings.Repeat("é", 1<<14), allOptions)))[0]
	require.Less(t, len(g.Tool), 200)
	other := gates(h.ask(running("r2", strings.Repeat("é", 1<<14)+"!", allOptions)))[0]
	require.NotEqual(t, g.Tool, other.Tool)
}
