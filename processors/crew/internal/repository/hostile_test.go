package repository

import (
	"fmt"
	"math"
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

// hostileText is a text that no door and no group writes.
func hostileText(t *rapid.T, label string) string {
	return rapid.SampledFrom([]string{
		"", " ", "\x00", "a", "a/*", "./a//b", "src/*", "..", "*", `\`, mira.AgentID, noor.AgentID, "dock", "crew-1", "\xff", "船\n",
		strings.Repeat("x", 100<<10), strings.Repeat("船/", 250),
	}).Draw(t, label)
}

func hostileMember(t *rapid.T) crewbody.Member {
	if rapid.Bool().Draw(t, "known") {
		return rapid.SampledFrom([]crewbody.Member{mira, noor, otto}).Draw(t, "member")
	}
	return crewbody.Member{
		AgentID: hostileText(t, "agent"), CrewID: hostileText(t, "crew"), ProjectID: hostileText(t, "project"),
		RoleID: hostileText(t, "role"), RoleName: hostileText(t, "name"), Host: hostileText(t, "host"), Cwd: hostileText(t, "cwd"),
	}
}

// hostileBody is a body with absurd values.
func hostileBody(t *rapid.T, actions []string) crewbody.Body {
	n := rapid.SampledFrom([]int64{0, -1, 1, 1000, math.MinInt64, math.MaxInt64, 1_790_000_000_000}).Draw(t, "number")
	action := rapid.SampledFrom(append([]string{"", "none"}, actions...)).Draw(t, "action")
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		return crewbody.LockAsked{Member: hostileMember(t), FilePath: hostileText(t, "path"), Reason: hostileText(t, "reason"), TTLMS: n}
	case 1:
		return crewbody.UnlockAsked{
			AgentID: hostileText(t, "agent"), FilePath: hostileText(t, "path"), Force: rapid.Bool().Draw(t, "force"), By: hostileText(t, "by"),
		}
	case 2:
		return crewbody.AgentActive{Member: hostileMember(t)}
	case 3:
		return crewbody.AgentEnded{AgentID: hostileText(t, "agent")}
	case 4:
		return crewbody.Receipt{
			ActionID: action, Failed: rapid.Bool().Draw(t, "failed"), Error: hostileText(t, "error"), Commit: hostileText(t, "commit"),
			Files: []string{hostileText(t, "file")}, Missing: []string{hostileText(t, "missing")}, Dirty: []string{hostileText(t, "dirty")}[:n&1],
		}
	case 5:
		return crewbody.HostStarted{Host: hostileText(t, "host"), Epoch: n}
	case 6:
		return crewbody.Due{AtMS: n}
	case 7:
		return crewbody.ReleaseLocks{AgentID: hostileText(t, "agent")}
	default:
		payload, err := json.Marshal(map[string]any{
			"filePath": strings.ToValidUTF8(hostileText(t, "path"), "?"), "reason": "r", "message": strings.ToValidUTF8(hostileText(t, "message"), "?"),
			"files": []string{"a", "src/a"},
		})
		require.NoError(t, err)
		return crewbody.Command{
			Member: hostileMember(t), Name: rapid.SampledFrom([]string{"LOCK_FILE", "UNLOCK_FILE", "COMMIT", "COMMIT", "DECISION", ""}).Draw(t, "name"),
			Payload: payload,
		}
	}
}

func TestHostileInputsNeitherPanicNorGrowTheRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHarness(t)
		var actions []string
		for i := range rapid.IntRange(1, 25).Draw(t, "inputs") {
			body := hostileBody(t, actions)
			from := rapid.SampledFrom([]string{"", "", mailbox.Agent(mira.AgentID), "host/dock", "crew/crew-1"}).Draw(t, "from")
			in := topics.CrewInput{InputID: fmt.Sprint(i), Kind: body.Kind(), From: from, Body: crewbody.Encode(body)}
			if from != "" {
				in.Number = int64(i + 1)
			}
			row := h.state()
			keep, changed, list := h.group.Step(row, h.key, in, h.now, h.now)
			require.True(t, keep)
			if changed {
				raw, err := Table.Marshal(row)
				require.NoError(t, err)
				require.Less(t, len(raw), 100<<10)
				h.row = raw
			}
			size := 0
			for _, e := range list {
				switch e := e.(type) {
				case mailbox.Mail:
					size += len(e.Input.Body)
					require.Less(t, len(e.Input.Body), 900<<10, e.Input.Kind)
				case topics.CrewAction:
					size += len(e.Body)
					require.Less(t, len(e.Body), 900<<10, e.Kind)
					actions = append(actions, e.ActionID)
				case topics.CrewEvent:
					size += len(e.Fields)
					require.Less(t, len(e.Fields), 400<<10, e.Type)
				}
			}
			require.Less(t, size, 8<<20)
			due := h.state().DeadlineMs
			require.True(t, due == 0 || due > h.state().Mailbox.ClockMs, "no deadline stays due: %d, now %d", due, h.now.UnixMilli())
			h.now = h.now.Add(time.Duration(rapid.SampledFrom([]int64{-3600, 0, 1, 60, 600}).Draw(t, "tick")) * time.Second)
		}
	})
}

func TestRowOfManyAgentsThatHaveEndedStaysSmall(t *testing.T) {
	h := newHarness(t)
	long := func(n int) string { return strings.Repeat("n", n) }
	for i := range endedLimit {
		id := fmt.Sprintf("%08x-0000-4000-8000-%040d", i, i)
		m := crewbody.Member{
			AgentID: id, CrewID: long(128), ProjectID: long(128), RoleID: long(200), RoleName: long(200), Host: long(128), Cwd: long(512),
		}
		h.command(m, "LOCK_FILE", map[string]string{"filePath": fmt.Sprint("f", i)})
		h.do(mailbox.Agent(id), crewbody.AgentEnded{AgentID: id})
	}
	require.Less(t, len(h.row), rowLimit, "there is room for locks")
	require.Len(t, h.lock(mira, "a").events("lock:acquired"), 1)
}
