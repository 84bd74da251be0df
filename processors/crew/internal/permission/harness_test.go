package permission

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

const (
	agentID = "a1b2c3d4-0000-4000-8000-000000000001"
	run     = "agent/" + agentID + "/7"
)

var noon = time.UnixMilli(1_790_000_000_000).UTC()

// tb is implemented by *testing.T and *rapid.T.
type tb interface {
	require.TestingT
	Helper()
}

// harness has the requests of one agent, which are encoded and decoded between two steps, as in a row.
type harness struct {
	tb        tb
	who       Who
	now       time.Time
	autopilot bool

	box   *mailbox.Mailbox
	row   []byte
	steps int
}

func newHarness(t tb) *harness {
	return &harness{
		tb: t, now: noon, box: &mailbox.Mailbox{},
		who: Who{
			Member: crewbody.Member{AgentID: agentID, CrewID: "c1", RoleID: "developer", Host: "h1"}, Run: run, Epoch: 3,
			Timeout: time.Minute,
		},
	}
}

func (h *harness) permissions() *Permissions {
	h.tb.Helper()
	p := &Permissions{}
	require.NoError(h.tb, proto.Unmarshal(h.row, p))
	return p
}

func (h *harness) step(apply func(*Permissions, *mailbox.Step)) []mailbox.Effect {
	h.tb.Helper()
	h.steps++
	in := topics.CrewInput{InputID: strconv.Itoa(h.steps), Kind: "permission"}
	s, ok := mailbox.Begin(h.box, mailbox.Agent(agentID), in, h.now, h.now)
	require.True(h.tb, ok)
	p := h.permissions()
	apply(p, s)
	var err error
	h.row, err = proto.MarshalOptions{Deterministic: true}.Marshal(p)
	require.NoError(h.tb, err)
	require.Less(h.tb, len(h.row), 128<<10)
	return s.Effects
}

func (h *harness) ask(req crewbody.Permission) []mailbox.Effect {
	h.tb.Helper()
	return h.step(func(p *Permissions, s *mailbox.Step) { p.Ask(s, h.who, req, h.autopilot) })
}

func (h *harness) end(end crewbody.GateEnded) []mailbox.Effect {
	h.tb.Helper()
	return h.step(func(p *Permissions, s *mailbox.Step) { p.GateEnded(s, h.who, end) })
}

func (h *harness) cancel(answer bool) []mailbox.Effect {
	h.tb.Helper()
	return h.step(func(p *Permissions, s *mailbox.Step) { p.CancelAll(s, h.who, topics.CauseParentEnded, answer) })
}

// The options of most agents, and some without one of them.
const (
	allOptions  = `allow_always allow_once reject_once reject_always`
	neverOnce   = `allow_always reject_once`
	onlyAllow   = `allow_once`
	secondAllow = `allow_once allow_once reject_once`
)

func options(kinds string) topics.Raw {
	var list []string
	for i, kind := range strings.Fields(kinds) {
		list = append(list, fmt.Sprintf(`{"optionId":"o%d-%s","name":"Option %d","kind":%q}`, i, kind, i, kind))
	}
	return topics.Raw("[" + strings.Join(list, ",") + "]")
}

// running returns the request to run a command.
func running(id, command, kinds string) crewbody.Permission {
	call, _ := json.Marshal(map[string]any{
		"toolCallId": "call-" + id, "title": "Run a command", "kind": "execute", "rawInput": map[string]any{"command": command},
	}, json.Deterministic(true))
	return crewbody.Permission{Run: run, RequestID: id, SessionID: "sess-1", ToolCall: call, Options: options(kinds)}
}

func gateOf(requestID string) string { return topics.GateID(agentID, run, requestID) }

func approved(requestID string) crewbody.GateEnded {
	return crewbody.GateEnded{
		GateID: gateOf(requestID), Status: topics.GateApproved, Cause: topics.CauseHuman, By: "ines",
	}
}

func ended(requestID string, status topics.GateStatus, cause topics.GateCause) crewbody.GateEnded {
	return crewbody.GateEnded{GateID: gateOf(requestID), Status: status, Cause: cause}
}

// answers returns the answers to the host.
func (h *harness) answers(effects []mailbox.Effect) (list []crewbody.Answer) {
	h.tb.Helper()
	for _, e := range effects {
		act, ok := e.(topics.CrewAction)
		if !ok {
			continue
		}
		require.Equal(h.tb, "h1", act.Host)
		require.EqualValues(h.tb, 3, act.Epoch, "a later process knows nothing of the request")
		answer, err := crewbody.Decode[crewbody.Answer](act.Body)
		require.NoError(h.tb, err)
		require.Equal(h.tb, agentID, answer.AgentID)
		require.Equal(h.tb, run, answer.Run)
		list = append(list, answer)
	}
	return list
}

func gates(effects []mailbox.Effect) (list []topics.GateRequest) {
	for _, e := range effects {
		if ask, ok := e.(mailbox.Ask); ok {
			list = append(list, ask.Request)
		}
	}
	return list
}

func events(effects []mailbox.Effect, kind string) (list []map[string]any) {
	for _, e := range effects {
		if happened, ok := e.(topics.CrewEvent); ok && happened.Type == kind {
			var fields map[string]any
			if json.Unmarshal(happened.Fields, &fields) == nil {
				list = append(list, fields)
			}
		}
	}
	return list
}
