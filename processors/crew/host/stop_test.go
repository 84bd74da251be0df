//go:build unix

package host

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/testing/kill"
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

// killAtEnd kills the process whose ID is in a file when the test ends.
func killAtEnd(t *testing.T, file string) {
	t.Cleanup(func() {
		raw, _ := os.ReadFile(file)
		if pid, err := strconv.Atoi(string(raw)); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
}

func quickStop(_ *rig, _ *Config, l *times) { l.stop = 200 * time.Millisecond }

func TestStopClosesTheInputThenTerminatesThenKills(t *testing.T) {
	for name, c := range map[string]struct {
		script crewtest.Script
		want   crewbody.Exited
		slow   bool
	}{
		"closed input": {crewtest.Script{}, crewbody.Exited{}, true},
		"SIGTERM":      {crewtest.Script{KeepAlive: true}, crewbody.Exited{Code: 1, Signal: "terminated"}, false},
		"SIGKILL":      {crewtest.Script{KeepAlive: true, Stubborn: true}, crewbody.Exited{Code: 1, Signal: "killed"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			change := quickStop
			if c.slow {
				change = func(*rig, *Config, *times) {}
			}
			r := newRig(t, goAgent(t, c.script), change)
			run, _ := r.started()
			r.act(crewbody.Stop{AgentID: agentID, Run: run})
			c.want.Run = run
			require.Equal(t, c.want, await[crewbody.Exited](r, 1)[0])
		})
	}
}

func TestStopOfTheHostEndsAllAgentsAndSaysSo(t *testing.T) {
	r := newRig(t, goAgent(t, crewtest.Script{KeepAlive: true, Rules: []crewtest.Rule{{Steps: []crewtest.Step{{Hang: true}}}}}), quickStop)
	run, session := r.started()
	r.prompt(run, session, "p")
	r.stop()
	exits := said[crewbody.Exited](r)
	require.Len(t, exits, 1)
	require.True(t, exits[0].Stopped)
	r.act(crewbody.Start{AgentID: agentID, Cwd: r.dir}) // it has no effect any more
}

func TestChildrenOfAnAgentEndWithIt(t *testing.T) {
	for name, end := range map[string]crewtest.Step{"exit": {Exit: intOf(0)}, "signal": {Signal: int(syscall.SIGKILL)}} {
		t.Run(name, func(t *testing.T) {
			pid := t.TempDir() + "/pid"
			r := newRig(t, goAgent(t, crewtest.Script{Rules: []crewtest.Rule{{Steps: []crewtest.Step{{Fork: pid}, {Await: pid}, end}}}}))
			run, session := r.started()
			r.prompt(run, session, "p")
			await[crewbody.Exited](r, 1)
			gone(t, pid)
		})
	}
	t.Run("has left the group", func(t *testing.T) {
		pid := needsSetsid(t) + "/pid"
		argv := append([]string{"sh", "-c", "setsid sh -c '" + forks(pid) + `' & exec "$0" "$@"`},
			goAgent(t, crewtest.Script{Rules: []crewtest.Rule{{Steps: []crewtest.Step{{Await: pid}, {Exit: intOf(0)}}}}})...)
		killAtEnd(t, pid)
		r := newRig(t, argv)
		run, session := r.started()
		r.prompt(run, session, "p")
		await[crewbody.Exited](r, 1)
		gone(t, pid)
	})
}

// forks is a shell command that writes the ID of a process that does not end by itself to a file, and waits for it.
func forks(file string) string {
	return fmt.Sprintf(`trap "" TERM HUP; sleep 600 & printf $! >%[1]s.tmp; mv %[1]s.tmp %[1]s; wait; true`, file)
}

// needsSetsid returns a directory on systems on which a host finds processes that have left their group.
func needsSetsid(t *testing.T) (dir string) {
	t.Helper()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("no /proc")
	}
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("no setsid")
	}
	return t.TempDir()
}

func TestTerminalsEndWithTheirAgent(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, goAgent(t, crewtest.Script{Rules: []crewtest.Rule{{Steps: []crewtest.Step{
		{Terminal: []string{"sh", "-c", "printf $$ >" + dir + "/tmp; mv " + dir + "/tmp " + dir + "/pid; sleep 600"}},
	}}}}), func(_ *rig, c *Config, _ *times) { c.Policy.Terminal = Allow })
	run, session := r.started()
	r.prompt(run, session, "p")
	require.Eventually(t, func() bool { _, err := os.Stat(dir + "/pid"); return err == nil }, waitLimit, 5*time.Millisecond)
	r.act(crewbody.Stop{AgentID: agentID, Run: run})
	await[crewbody.Exited](r, 1)
	gone(t, dir+"/pid")
}

func TestWatchersEndWithTheirGroups(t *testing.T) {
	r := newRig(t, goAgent(t, crewtest.Script{Rules: []crewtest.Rule{{Steps: []crewtest.Step{
		{Terminal: []string{"sh", "-c", "exit 3"}}, {Call: "terminal/create", CallParams: rawOf(`{"command":"sleep","args":["600"]}`)},
	}}}}), func(_ *rig, c *Config, _ *times) { c.Policy.Terminal = Allow })
	run, session := r.started()
	r.prompt(run, session, "p")
	await[crewbody.TurnEnded](r, 1)
	require.Equal(t, "exit 3: ", r.text())
	var groups []*group
	r.h.mu.Lock()
	of := r.h.runs[agentID]
	r.h.mu.Unlock()
	require.True(t, of.spawned.Load())
	require.Eventually(t, func() bool { // the agent does not wait for its second terminal
		of.shells.mu.Lock()
		defer of.shells.mu.Unlock()
		return len(of.shells.open) == 1
	}, time.Minute, time.Millisecond)
	of.shells.mu.Lock()
	groups = append(groups, of.group)
	for _, s := range of.shells.open {
		groups = append(groups, s.group)
	}
	of.shells.mu.Unlock()
	require.Len(t, groups, 2)
	r.act(crewbody.Stop{AgentID: agentID, Run: run})
	await[crewbody.Exited](r, 1)
	for _, g := range groups {
		require.NotNil(t, g.watcher.ProcessState, "the watcher is reaped")
		require.ErrorIs(t, syscall.Kill(-g.watcher.Process.Pid, 0), syscall.ESRCH)
	}
}

func TestClosedGroupGetsNoSignal(t *testing.T) {
	g, err := newGroup()
	require.NoError(t, err)
	c := exec.Command("sh", "-c", "sleep 600 & wait")
	g.add(c)
	require.NoError(t, c.Start())
	g.terminate()
	require.Error(t, c.Wait())
	require.NoError(t, syscall.Kill(-g.watcher.Process.Pid, 0), "the watcher keeps the ID of the group")
	g.close()
	g.watcher.Process = nil // a signal would panic
	g.terminate()
	g.kill()
}

// A host that is killed cannot end the processes of its agents itself.
func TestAgentsDieWithAHostThatIsKilled(t *testing.T) {
	for name, command := range map[string]func(t *testing.T, pid string) []string{
		"agent": func(t *testing.T, pid string) []string {
			return goAgent(t, crewtest.Script{KeepAlive: true, Stubborn: true, Start: []crewtest.Step{{Pid: pid}}})
		},
		"launcher, such as npx": func(t *testing.T, pid string) []string {
			argv := goAgent(t, crewtest.Script{KeepAlive: true, Stubborn: true, Start: []crewtest.Step{{Pid: pid}}})
			return []string{"sh", "-c", "'" + strings.Join(argv, "' '") + "'; true"}
		},
		"child that has left the group": func(t *testing.T, pid string) []string {
			needsSetsid(t)
			return []string{"sh", "-c", "setsid sh -c '" + forks(pid) + "'; true"}
		},
		"child of an agent": func(_ *testing.T, pid string) []string { return []string{"sh", "-c", forks(pid)} },
		"agent that signals its group": func(_ *testing.T, pid string) []string {
			return []string{"sh", "-c", "trap '' HUP INT TERM; kill -HUP 0; kill -INT 0; kill -TERM 0; " + forks(pid)}
		},
		"terminal": func(t *testing.T, pid string) []string {
			create, err := json.Marshal(map[string]any{
				"id": 1, "method": "terminal/create", "params": map[string]any{"command": "sh", "args": []string{"-c", forks(pid)}},
			})
			require.NoError(t, err)
			return goAgent(t, crewtest.Script{Start: []crewtest.Step{{Line: string(create)}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			killAtEnd(t, dir+"/pid")
			host := kill.Start(t, hostProgram, child{dir, command(t, dir+"/pid")})
			require.Eventually(t, func() bool { _, err := os.Stat(dir + "/pid"); return err == nil }, waitLimit, 5*time.Millisecond)
			require.NoError(t, host.Kill())
			gone(t, dir+"/pid")
		})
	}
}

func TestAgentThatDoesNotAnswerInTimeIsStopped(t *testing.T) {
	r := newRig(t, goAgent(t, crewtest.Script{Start: []crewtest.Step{{Stuck: true}}}), quickStop, func(_ *rig, _ *Config, l *times) {
		l.initialize = 50 * time.Millisecond
	})
	run := r.act(crewbody.Start{AgentID: agentID, Cwd: r.dir})
	exit := await[crewbody.Exited](r, 1)[0]
	require.Contains(t, exit.Error, "no answer within 50ms")
	failed := said[crewbody.StartFailed](r)[0]
	require.Equal(t, crewbody.StartFailed{
		Run: run, Stage: crewbody.StageInitialize, Error: "initialize: no answer within 50ms", Process: true,
	}, failed)
}

func TestSlowTurnHasNoTimeLimitAndTheHostBeatsMeanwhile(t *testing.T) {
	file := t.TempDir() + "/go on"
	r := newRig(t, goAgent(t, crewtest.Script{Rules: []crewtest.Rule{{Steps: []crewtest.Step{{Await: file}}}}}),
		func(_ *rig, _ *Config, l *times) { l.beat = 20 * time.Millisecond })
	run, session := r.started()
	r.prompt(run, session, "p")
	require.Equal(t, run, await[crewbody.HostBeat](r, 20)[19].Run)
	require.Empty(t, said[crewbody.TurnEnded](r))
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	await[crewbody.TurnEnded](r, 1)
}

func TestTimeOfInitializeIsConfigured(t *testing.T) {
	for configured, want := range map[time.Duration]time.Duration{0: 30 * time.Second, 3 * time.Minute: 3 * time.Minute} {
		r := newRig(t, goAgent(t, crewtest.Script{}), func(r *rig, c *Config, _ *times) {
			c.Initialize = configured
			checked := *c
			_, err := checked.complete()
			require.NoError(r.t, err)
			require.Equal(r.t, want, checked.times().initialize)
		})
		r.stop()
	}
	c := Config{Initialize: -1}
	_, err := c.complete()
	require.ErrorContains(t, err, "Initialize")
}

func TestEndlessLineStopsTheAgent(t *testing.T) {
	bothAgents(t, func(t *testing.T, command func(*testing.T, crewtest.Script) []string) {
		r := newRig(t, command(t, crewtest.Script{Rules: []crewtest.Rule{{Steps: []crewtest.Step{{Flood: 50 << 20}, {Hang: true}}}}}))
		run, session := r.started()
		r.prompt(run, session, "p")
		exit := await[crewbody.Exited](r, 1)[0]
		require.Contains(t, exit.Error, "16 MiB")
		require.NotZero(t, exit.Code, "an agent that ends when its input is closed has not succeeded")
		require.Len(t, said[crewbody.Problem](r), 1)
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
	await[crewbody.TurnEnded](r, 1)
	require.Equal(t, big, r.text())
	var last topics.Raw
	for _, rec := range r.out.all() {
		require.Less(t, len(rec.in.Body), 300<<10)
	}
	for _, u := range said[crewbody.Updates](r) {
		last = u.Updates[len(u.Updates)-1]
	}
	require.JSONEq(t, `{"sessionUpdate":"tool_call","toolCallId":"t1","title":"Read","status":"completed","_meta":{"turntable.dropped":1}}`,
		string(last))
}

func TestStandardErrorIsNotInRecordsUnlessWanted(t *testing.T) {
	for _, wanted := range []bool{false, true} {
		r := newRig(t, goAgent(t, crewtest.Script{Start: []crewtest.Step{{Stderr: "key=secret"}, {Exit: intOf(4)}}}),
			func(_ *rig, c *Config, _ *times) { c.Policy.Stderr = wanted })
		r.act(crewbody.Start{AgentID: agentID, Cwd: r.dir})
		exit := await[crewbody.Exited](r, 1)[0]
		require.Equal(t, 4, exit.Code)
		require.Equal(t, wanted, exit.Error == "key=secret", exit.Error)
		require.Contains(t, said[crewbody.StartFailed](r)[0].Error, "ended")
	}
}
