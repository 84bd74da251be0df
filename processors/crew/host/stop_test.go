//go:build unix

package host

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/process"
	"github.com/turntable-streams/turntable/processors/crew/crewtest"
	"github.com/turntable-streams/turntable/topics"
)

// gone waits until the process whose ID is in a file does not run any more.
func gone(t *testing.T, file string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	pid, err := strconv.Atoi(string(raw))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		if syscall.Kill(pid, 0) != nil {
			return true
		}
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err == nil && bytes.Contains(stat, []byte(") Z ")) // nobody waits for it
	}, waitLimit, 5*time.Millisecond)
}

func quickStop(_ *rig, _ *Config, l *times) { l.stop = 200 * time.Millisecond }

func TestStopClosesTheInputThenTerminatesThenKills(t *testing.T) {
	for name, c := range map[string]struct {
		script crewtest.Script
		want   topics.CrewExited
		slow   bool
	}{
		"closed input": {crewtest.Script{}, topics.CrewExited{}, true},
		"SIGTERM":      {crewtest.Script{KeepAlive: true}, topics.CrewExited{Code: 1, Signal: "terminated"}, false},
		"SIGKILL":      {crewtest.Script{KeepAlive: true, Stubborn: true}, topics.CrewExited{Code: 1, Signal: "killed"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			change := quickStop
			if c.slow {
				change = func(*rig, *Config, *times) {}
			}
			r := newRig(t, goAgent(t, c.script), change)
			run, _ := r.started()
			r.act(topics.CrewStop{AgentID: agentID, Run: run})
			c.want.Run = run
			require.Equal(t, c.want, await[topics.CrewExited](r, 1)[0])
		})
	}
}

func TestStopOfTheHostEndsAllAgentsAndSaysSo(t *testing.T) {
	r := newRig(t, goAgent(t, crewtest.Script{KeepAlive: true, Rules: []crewtest.Rule{{Steps: []crewtest.Step{{Hang: true}}}}}), quickStop)
	run, session := r.started()
	r.prompt(run, session, "p")
	r.stop()
	exits := said[topics.CrewExited](r)
	require.Len(t, exits, 1)
	require.True(t, exits[0].Stopped)
	r.act(topics.CrewStart{AgentID: agentID, Cwd: r.dir}) // it has no effect any more
}

func TestChildrenOfAnAgentEndWithIt(t *testing.T) {
	for name, end := range map[string]crewtest.Step{"exit": {Exit: intOf(0)}, "signal": {Signal: int(syscall.SIGKILL)}} {
		t.Run(name, func(t *testing.T) {
			pid := t.TempDir() + "/pid"
			r := newRig(t, goAgent(t, crewtest.Script{Rules: []crewtest.Rule{{Steps: []crewtest.Step{{Fork: pid}, {Await: pid}, end}}}}))
			run, session := r.started()
			r.prompt(run, session, "p")
			await[topics.CrewExited](r, 1)
			gone(t, pid)
		})
	}
}

func TestTerminalsEndWithTheirAgent(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, goAgent(t, crewtest.Script{Rules: []crewtest.Rule{{Steps: []crewtest.Step{
		{Terminal: []string{"sh", "-c", "printf $$ >" + dir + "/tmp; mv " + dir + "/tmp " + dir + "/pid; sleep 600"}},
	}}}}), func(_ *rig, c *Config, _ *times) { c.Policy.Terminal = Allow })
	run, session := r.started()
	r.prompt(run, session, "p")
	require.Eventually(t, func() bool { _, err := os.Stat(dir + "/pid"); return err == nil }, waitLimit, 5*time.Millisecond)
	r.act(topics.CrewStop{AgentID: agentID, Run: run})
	await[topics.CrewExited](r, 1)
	gone(t, dir+"/pid")
}

func TestAgentsDieWithAHostThatIsKilled(t *testing.T) {
	dir := t.TempDir()
	argv, err := json.Marshal(goAgent(t, crewtest.Script{KeepAlive: true, Stubborn: true, Start: []crewtest.Step{{Pid: dir + "/pid"}}}))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(dir+"/argv", argv, 0o600))
	host := process.Spawn(t, childDir+"="+dir)
	require.Eventually(t, func() bool { _, err := os.Stat(dir + "/pid"); return err == nil }, waitLimit, 5*time.Millisecond)
	require.NoError(t, host.Process.Kill())
	<-host.Ended
	gone(t, dir+"/pid")
}

func TestAgentThatDoesNotAnswerInTimeIsStopped(t *testing.T) {
	r := newRig(t, goAgent(t, crewtest.Script{Start: []crewtest.Step{{Stuck: true}}}), quickStop, func(_ *rig, _ *Config, l *times) {
		l.initialize = 50 * time.Millisecond
	})
	run := r.act(topics.CrewStart{AgentID: agentID, Cwd: r.dir})
	exit := await[topics.CrewExited](r, 1)[0]
	require.Contains(t, exit.Error, "no answer within 50ms")
	failed := said[topics.CrewStartFailed](r)[0]
	require.Equal(t, topics.CrewStartFailed{
		Run: run, Stage: topics.CrewStageInitialize, Error: "initialize: no answer within 50ms", Process: true,
	}, failed)
}

func TestSlowTurnHasNoTimeLimitAndTheHostBeatsMeanwhile(t *testing.T) {
	file := t.TempDir() + "/go on"
	r := newRig(t, goAgent(t, crewtest.Script{Rules: []crewtest.Rule{{Steps: []crewtest.Step{{Await: file}}}}}),
		func(_ *rig, _ *Config, l *times) { l.beat = 20 * time.Millisecond })
	run, session := r.started()
	r.prompt(run, session, "p")
	require.Equal(t, run, await[topics.CrewHostBeat](r, 20)[19].Run)
	require.Empty(t, said[topics.CrewTurnEnded](r))
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	await[topics.CrewTurnEnded](r, 1)
}

func TestEndlessLineStopsTheAgent(t *testing.T) {
	bothAgents(t, func(t *testing.T, command func(*testing.T, crewtest.Script) []string) {
		r := newRig(t, command(t, crewtest.Script{Rules: []crewtest.Rule{{Steps: []crewtest.Step{{Flood: 50 << 20}, {Hang: true}}}}}))
		run, session := r.started()
		r.prompt(run, session, "p")
		exit := await[topics.CrewExited](r, 1)[0]
		require.Contains(t, exit.Error, "16 MiB")
		require.Len(t, said[topics.CrewProblem](r), 1)
	})
}

func TestLargeUpdatesFitIntoRecords(t *testing.T) {
	big := strings.Repeat("ü", 300<<10)
	call, err := json.Marshal(map[string]any{
		"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Read", "rawOutput": big, "status": "completed",
	})
	require.NoError(t, err)
	r := newRig(t, goAgent(t, crewtest.Script{Rules: []crewtest.Rule{{Steps: []crewtest.Step{{Text: big}, {Update: call}}}}}))
	run, session := r.started()
	r.prompt(run, session, "p")
	await[topics.CrewTurnEnded](r, 1)
	require.Equal(t, big, r.text())
	var last topics.Raw
	for _, rec := range r.out.all() {
		require.Less(t, len(rec.in.Body), 300<<10)
	}
	for _, u := range said[topics.CrewUpdates](r) {
		last = u.Updates[len(u.Updates)-1]
	}
	require.JSONEq(t, `{"sessionUpdate":"tool_call","toolCallId":"t1","title":"Read","status":"completed","_meta":{"turntable.dropped":1}}`,
		string(last))
}

func TestStandardErrorIsNotInRecordsUnlessWanted(t *testing.T) {
	for _, wanted := range []bool{false, true} {
		r := newRig(t, goAgent(t, crewtest.Script{Start: []crewtest.Step{{Stderr: "key=secret"}, {Exit: intOf(4)}}}),
			func(_ *rig, c *Config, _ *times) { c.Policy.Stderr = wanted })
		r.act(topics.CrewStart{AgentID: agentID, Cwd: r.dir})
		exit := await[topics.CrewExited](r, 1)[0]
		require.Equal(t, 4, exit.Code)
		require.Equal(t, wanted, exit.Error == "key=secret", exit.Error)
		require.Contains(t, said[topics.CrewStartFailed](r)[0].Error, "ended")
	}
}
