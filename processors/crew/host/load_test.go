package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/crewtest"
	"github.com/turntable-streams/turntable/processors/crew/host"
)

// A turn goes on while the processes of the groups are replaced: it is not interrupted, and its prompt is sent once.
func TestTurnGoesOnWhileTheGroupsAreDeployed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "go on")
	s := newStageOf(t, processors.ExactlyOnce, crewtest.Script{Rules: []crewtest.Rule{{Steps: []crewtest.Step{
		{Text: "begin"}, {Await: file}, {Text: "end"},
	}}}})
	s.host()
	s.spawn()
	s.tell(crewbody.Prompt{Text: "go"})
	heard[crewbody.Updates](s, 1)
	for _, instance := range []string{"two", "three"} {
		stop := s.stopGroups
		s.stopGroups = s.groups(instance, processors.ExactlyOnce)
		stop()
	}
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Equal(t, "end_turn", heard[crewbody.TurnEnded](s, 1).StopReason)
	s.tell(crewbody.Prompt{Text: "again"})
	heard[crewbody.TurnEnded](s, 2)
	require.Zero(t, s.count(crewbody.Exited{}))
	require.Equal(t, 2, s.count(crewbody.TurnEnded{}))
}

// Updates of any number and size do not keep the agent's next messages from it.
func TestFloodOfUpdatesBlocksNothing(t *testing.T) {
	var flood []crewtest.Step
	for range 8 {
		flood = append(flood, crewtest.Step{Text: strings.Repeat("\u20ac", 350_000)})
	}
	huge, err := json.Marshal(map[string]any{
		"sessionUpdate": "tool_call", "toolCallId": "huge", "title": "huge", "rawOutput": strings.Repeat("x", 5<<20),
	})
	require.NoError(t, err)
	flood = append(flood, crewtest.Step{Update: huge})
	for i := range 2000 {
		flood = append(flood, crewtest.Step{Tool: &crewtest.Tool{ID: fmt.Sprint("call-", i), Title: "call"}})
	}
	s := newStageOf(t, processors.ExactlyOnce, crewtest.Script{Rules: []crewtest.Rule{{Match: "flood", Steps: flood}}})
	s.host()
	s.spawn()
	s.tell(crewbody.Prompt{Text: "flood"})
	require.Equal(t, "end_turn", heard[crewbody.TurnEnded](s, 1).StopReason)
	s.tell(crewbody.Prompt{Text: "next"})
	require.Equal(t, "end_turn", heard[crewbody.TurnEnded](s, 2).StopReason)
	require.Zero(t, s.count(crewbody.Problem{}))
	require.Zero(t, s.count(crewbody.Exited{}))
}

// A host that cannot begin says why, and soon.
func TestHostWithoutBrokersSaysSo(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	h, err := host.New(host.Config{
		Agent: "harbor", Name: "h1", Brokers: []string{"127.0.0.1:1"}, Commands: map[string][]string{"": {os.Args[0]}},
		Dirs: []string{t.TempDir()}, Logger: zap.New(core),
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- h.Run(ctx) }()
	require.Eventually(t, func() bool { return logs.Len() > 0 }, 10*time.Second, 10*time.Millisecond)
	cancel()
	require.NoError(t, <-ran)
}

// Two hosts with one name that start in the same moment: one ends, and the other one has the agents.
func TestOfTwoHostsThatStartTogetherOneEnds(t *testing.T) {
	s := newStage(t, processors.AtLeastOnce)
	ended := make(chan error, 2)
	for range 2 {
		h, err := host.New(host.Config{
			Agent: s.topics.Agent, Name: "h1", Brokers: s.brokers, Commands: map[string][]string{"": s.argv}, Dirs: []string{s.dir},
			Env: append(host.DefaultEnv(), "GORACE"),
		})
		require.NoError(t, err)
		s.background(func(ctx context.Context) error {
			err := h.Run(ctx)
			ended <- err
			return err
		})
	}
	s.spawn()
	select {
	case err := <-ended:
		require.ErrorIs(t, err, host.ErrReplaced)
	case <-time.After(20 * time.Second):
		require.FailNow(t, "both hosts run")
	}
	s.tell(crewbody.Prompt{Text: "go"})
	end := heard[crewbody.TurnEnded](s, 1)
	require.Equal(t, "end_turn", end.StopReason, end.Error)
}
