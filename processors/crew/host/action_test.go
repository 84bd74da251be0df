package host

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/crewtest"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

func TestActionIsDoneOnceAndOnlyByItsHost(t *testing.T) {
	r := newRig(t, goAgent(t, crewtest.Script{}))
	start := crewbody.Start{AgentID: agentID, Cwd: r.dir}
	other := topics.CrewAction{
		ActionID: "x", Kind: start.Kind(), Host: "h2", Subject: mailbox.Agent(agentID), Body: crewbody.Encode(start),
	}
	r.action(other)
	r.actAs("s1", 0, start)
	r.actAs("s1", 0, start)
	r.actAs("s1", testEpoch, start)
	await[crewbody.SessionReady](r, 1)
	r.stop()
	require.Len(t, said[crewbody.Started](r), 1)
	require.Len(t, said[crewbody.Exited](r), 1)
}

func TestActionForAnEarlierRunOfTheHostIsAnsweredWithTheNewOne(t *testing.T) {
	r := newRig(t, goAgent(t, crewtest.Script{}))
	r.actAs("s1", testEpoch-1, crewbody.Start{AgentID: agentID, Cwd: r.dir})
	require.Equal(t, crewbody.HostStarted{Host: "h1", Epoch: testEpoch}, await[crewbody.HostStarted](r, 1)[0])
	r.stop()
	require.Empty(t, said[crewbody.Started](r))
	r.actAs("s1", testEpoch+1, crewbody.Start{AgentID: agentID, Cwd: r.dir})
}

func TestLaterHostOfTheSameNameReplacesThisOne(t *testing.T) {
	r := newRig(t, goAgent(t, crewtest.Script{}))
	r.actAs("s1", testEpoch+1, crewbody.Start{AgentID: agentID, Cwd: r.dir})
	require.ErrorIs(t, context.Cause(r.ctx), ErrReplaced)

	w := rows{host: "h1", from: "host/h1", waiting: map[string]struct{}{}}
	heard := func(epoch int64) *mailbox.Mailbox {
		return &mailbox.Mailbox{Heard: map[string]int64{"host/h1": epoch*mailbox.PerEpoch + 7, "host/h2": 999 * mailbox.PerEpoch}}
	}
	require.False(t, w.see("agent/a", heard(5), true))
	require.False(t, w.see("agent/b", heard(4), true))
	require.False(t, w.see("agent/b", nil, false))
	require.EqualValues(t, 5, w.epoch())
	require.Equal(t, []string{"agent/a"}, w.begin(6))
	require.False(t, w.see("agent/a", heard(6), true))
	require.True(t, w.see("agent/a", heard(7), true))
}

// The order of the topic decides between equal epochs only. Rows ignore the records of a lower epoch.
func TestClaimWithALowerEpochReplacesNoHost(t *testing.T) {
	c := newClaims()
	require.False(t, c.read(topics.CrewAction{ActionID: "earlier", Epoch: testEpoch}))
	require.False(t, c.read(topics.CrewAction{ActionID: c.id, Epoch: testEpoch}))
	require.EqualValues(t, testEpoch+1, <-c.mine)
	require.False(t, c.read(topics.CrewAction{ActionID: c.id, Epoch: testEpoch}), "the repeat of its own")
	require.False(t, c.read(topics.CrewAction{ActionID: "earlier", Epoch: testEpoch}), "the repeat of an earlier one")
	require.True(t, c.read(topics.CrewAction{ActionID: "later", Epoch: testEpoch + 1}))
}

func TestNewProcessOfAnAgentEndsTheEarlierOne(t *testing.T) {
	r := newRig(t, goAgent(t, crewtest.Script{Rules: []crewtest.Rule{{Steps: []crewtest.Step{{Hang: true}}}}}))
	run, session := r.started()
	r.prompt(run, session, "p")
	second := r.act(crewbody.Start{AgentID: agentID, Cwd: r.dir})
	ready := await[crewbody.SessionReady](r, 2)[1]
	require.Equal(t, second, ready.Run)
	require.Equal(t, run, said[crewbody.Exited](r)[0].Run)
	require.Equal(t, 1, r.h.Agents())
}

func TestStartOutsideOfTheDirectoriesAndAboveTheLimitFails(t *testing.T) {
	r := newRig(t, goAgent(t, crewtest.Script{}), func(_ *rig, c *Config, _ *times) { c.MaxAgents = 1 })
	r.started()
	for i, c := range []crewbody.Start{
		{AgentID: agentID, Cwd: t.TempDir()}, {AgentID: agentID, Cwd: r.path("none")}, {AgentID: agentID, Cwd: "relative"},
	} {
		run := r.act(c)
		failed := await[crewbody.StartFailed](r, i+1)[i]
		require.Equal(t, run, failed.Run)
		require.Equal(t, crewbody.StageProcess, failed.Stage)
		require.False(t, failed.Process)
	}
	require.Len(t, said[crewbody.Exited](r), 1)
	require.Eventually(t, func() bool { return r.h.Agents() == 0 }, waitLimit, time.Millisecond)
	r.act(crewbody.Start{AgentID: "a2", Cwd: r.dir})
	await[crewbody.SessionReady](r, 2)
	r.act(crewbody.Start{AgentID: "a3", Cwd: r.dir})
	require.Contains(t, await[crewbody.StartFailed](r, 4)[3].Error, "limit")
}

func TestGitActionsAreAnsweredToTheRowThatWaits(t *testing.T) {
	r := newRig(t, goAgent(t, crewtest.Script{}))
	for _, args := range [][]string{{"init", "-q"}, {"config", "user.email", "a@example.com"}, {"config", "user.name", "A"}} {
		c := exec.Command("git", args...)
		c.Dir = r.dir
		require.NoError(t, c.Run())
	}
	require.NoError(t, os.WriteFile(r.path("a.txt"), []byte("a"), 0o600))
	commit := crewbody.Commit{AgentID: agentID, Cwd: r.dir, Paths: []string{"a.txt"}, Message: "m", Author: "Dev", Fence: 1}
	outside := crewbody.Dirty{AgentID: agentID, Cwd: t.TempDir(), Paths: []string{"a.txt"}}
	for id, body := range map[string]crewbody.Body{"c1": commit, "d1": outside} {
		a := topics.CrewAction{
			ActionID: id, Kind: body.Kind(), Host: "h1", Subject: mailbox.Repository("repo"), Body: crewbody.Encode(body),
		}
		r.action(a)
		r.action(a)
	}
	for _, receipt := range await[crewbody.Receipt](r, 2) {
		if receipt.ActionID == "c1" {
			require.False(t, receipt.Failed, receipt.Error)
			require.Equal(t, []string{"a.txt"}, receipt.Files)
		} else {
			require.True(t, receipt.Failed)
			require.Contains(t, receipt.Error, "not in one of the host's")
		}
	}
	for _, rec := range r.out.all() {
		require.Equal(t, "repo", rec.key)
		require.Equal(t, r.h.catalog.CrewRepositoryInputs.Name(), rec.topic)
	}
}

func TestNewNamesAllProblems(t *testing.T) {
	_, err := New(Config{
		Agent: "Not A Name!", Name: "", Commands: map[string][]string{"": {"no-such-program-anywhere"}, "x": {}},
		Dirs: []string{"relative", "/no/such/dir"}, Policy: Policy{Write: "perhaps"}, MaxAgents: -1,
	})
	require.ErrorIs(t, err, ErrConfig)
	for _, part := range []string{
		"Agent", "Name:", "Brokers: none", "no-such-program-anywhere", `provider "x"`, "relative", "/no/such/dir", "perhaps", "MaxAgents",
	} {
		require.ErrorContains(t, err, part)
	}
}

func TestAgentsGetOnlyTheAllowedVariablesAndTheirModel(t *testing.T) {
	t.Setenv("HOST_TEST_KEY", "secret")
	t.Setenv("HOST_TEST_OTHER", "x")
	c := Config{
		Agent: "harbor", Name: "h", Brokers: []string{"b:1"}, Dirs: []string{t.TempDir()}, Env: []string{"PATH", "HOST_TEST_O*"},
		Commands: map[string][]string{"": {"sh", "--model={model}", "--acp"}, "p": {"sh"}},
	}
	_, err := c.complete()
	require.NoError(t, err)
	env := strings.Join(c.environ(), "\n")
	require.Contains(t, env, "HOST_TEST_OTHER=x")
	require.NotContains(t, env, "secret")
	for model, want := range map[string][]string{"": {"--acp"}, "m1": {"--model=m1", "--acp"}} {
		argv, err := c.command(crewbody.Start{Provider: "unknown", Model: model})
		require.NoError(t, err)
		require.Equal(t, want, argv[1:])
	}
}

func TestAgentWaitsWhileTheBrokersAreAway(t *testing.T) {
	away := make(chan struct{})
	bytes := 3 * maxWaiting
	r := newRig(t, goAgent(t, crewtest.Script{Rules: []crewtest.Rule{
		{Steps: []crewtest.Step{{Text: strings.Repeat("x", bytes), Split: 200 << 10}, {Save: &crewtest.File{Path: "written"}}}},
	}}))
	run, session := r.started()
	r.out.mu.Lock()
	r.out.away = away
	r.out.mu.Unlock()
	r.prompt(run, session, "p")
	size := func() int {
		r.h.out.mu.Lock()
		defer r.h.out.mu.Unlock()
		if b := r.h.out.boxes[mailbox.Agent(agentID)]; b != nil {
			return b.size
		}
		return 0
	}
	require.Eventually(t, func() bool { return size() > maxWaiting*3/4 }, waitLimit, time.Millisecond)
	require.NoFileExists(t, r.path("written"), "the agent is held up")
	require.LessOrEqual(t, size(), maxWaiting)
	r.out.mu.Lock()
	r.out.away = nil
	r.out.failing = 2
	r.out.mu.Unlock()
	close(away)
	await[crewbody.TurnEnded](r, 1)
	require.Len(t, r.text(), bytes)
}

// Each row gets its records in the order in which they were queued, under rising numbers, whatever fails.
func TestRecordsOfARowAreWrittenInOrder(t *testing.T) {
	catalog, err := topics.For("harbor")
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		w := &written{failing: rapid.IntRange(0, 1).Draw(t, "failing")}
		o := &outbox{
			to: w, topics: catalog, from: "host/h", batchTime: time.Millisecond, logger: zap.NewNop(), ctx: ctx,
			boxes: map[string]*box{}, number: 5 * mailbox.PerEpoch,
		}
		kinds := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 20).Draw(t, "kinds")
		var all sync.WaitGroup
		for row := range 2 {
			all.Go(func() {
				for i, k := range kinds {
					it := item{body: crewbody.Problem{Message: fmt.Sprint(i)}}
					if k > 0 {
						it = item{update: &update{run: "r", session: fmt.Sprint(k), raw: topics.Raw(fmt.Sprint(i))}}
					}
					_ = o.put(ctx, mailbox.Agent(fmt.Sprint(row)), it)
				}
			})
		}
		all.Wait()
		o.flush(ctx)
		for row := range 2 {
			number, next := int64(0), 0
			for _, rec := range w.all() {
				if rec.key != fmt.Sprint(row) {
					continue
				}
				require.Greater(t, rec.in.Number, number)
				number = rec.in.Number
				if u, err := crewbody.Decode[crewbody.Updates](rec.in.Body); err == nil && rec.in.Kind == "updates" {
					for _, raw := range u.Updates {
						require.Equal(t, fmt.Sprint(next), string(raw))
						require.Equal(t, fmt.Sprint(kinds[next]), u.SessionID)
						next++
					}
				} else {
					p, err := crewbody.Decode[crewbody.Problem](rec.in.Body)
					require.NoError(t, err)
					require.Equal(t, fmt.Sprint(next), p.Message)
					next++
				}
			}
			require.Equal(t, len(kinds), next)
		}
	})
}

var _ processors.Publisher = (*written)(nil)

// Actions that are in the topic before the host's own claim do not keep it from reading the claim, and are done once it has begun.
func TestActionsBeforeTheClaimOfTheHostAreDoneWhenItBegins(t *testing.T) {
	r := newRig(t, goAgent(t, crewtest.Script{}))
	h, err := New(r.h.config)
	require.NoError(t, err)
	out := &written{}
	finish := h.open(out)
	t.Cleanup(finish)
	waits := make(chan struct{})
	r.h = h
	go func() {
		defer close(waits)
		r.actAs("agent/a1/1", 0, crewbody.Start{AgentID: agentID, Cwd: r.dir})
		r.action(topics.CrewAction{
			ActionID: h.claims.id, Kind: "host_claim", Host: "h1", Epoch: testEpoch, Subject: "host/h1", Body: topics.Raw(`{}`),
		})
	}()
	epoch, ok := h.claim(t.Context(), &written{any: true}, testEpoch)
	require.True(t, ok)
	<-waits
	require.EqualValues(t, testEpoch, epoch)
	require.Zero(t, h.Agents())
	h.begin(t.Context(), epoch)
	require.Equal(t, 1, h.Agents())
}
