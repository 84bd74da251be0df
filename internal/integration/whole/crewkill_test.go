package whole

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/crewtest"
	"github.com/turntable-streams/turntable/topics"
)

const (
	crewInstances = 2
	crewMembers   = 3 // beside the lead
)

// Two processes with the groups of crews and gates, and the host of the agents, are killed at random moments, while agents lock
// files, write them, ask for permission, send messages and commit. Every permission ends once, every command is carried out at
// most once, no commit has a file that its agent did not hold, no message is lost, and the tables are what the log says.
func TestCrewsSurviveKills(t *testing.T) {
	rounds := kill.Size(t, "TURNTABLE_ROUNDS", onBroker(3, 4))
	kill.Guarantees(t, func(t *testing.T, guarantee processors.Guarantee) {
		y := newCrewWorld(t, guarantee)
		var done atomic.Int64
		loop := &kill.Loop{
			Seed: 7, Kills: kills(t, 4, 6), Victims: crewInstances + 1, Launch: y.launch, Judge: y.judge,
			Brokers: y.brokers, Agents: []string{y.agent}, Where: func() string { return y.log.last(30) },
			Work: rounds * crewMembers, Progress: func() int { return int(done.Load()) },
			Clients: func(ctx context.Context) error {
				working, ctx := errgroup.WithContext(ctx)
				for n := range crewMembers {
					working.Go(func() error {
						for round := range rounds {
							if err := y.work(ctx, n, round); err != nil {
								return err
							}
							done.Add(1)
						}
						return nil
					})
				}
				return working.Wait()
			},
			When: func(random *rand.Rand, _, done int) (int, time.Duration) { return done + random.IntN(2), 0 },
			Before: func(ctx context.Context, random *rand.Rand) error {
				for range random.IntN(40) {
					rest(ctx)
				}
				return nil
			},
		}
		y.start(loop)
		loop.Run(y.ctx, t)
	}, processors.ExactlyOnce, processors.AtLeastOnce)
}

// crewWorld is the processes and the people who talk to the agents.
type crewWorld struct {
	*world
	dir   string // of the repository
	store string // of the agents' sessions
	dirs  []string
	log   *crewLog

	inputs     atomic.Int64
	hostStarts atomic.Int64
}

const (
	testCrew = "crew"
	testRepo = "repo"
	testLead = "1ead0000-0000-4000-8000-000000000000"
)

// memberID is the ID of the n-th agent.
func memberID(n int) string { return fmt.Sprintf("a%07d-0000-4000-8000-000000000000", n) }

func newCrewWorld(t *testing.T, guarantee processors.Guarantee) *crewWorld {
	y := &crewWorld{
		world: newWorld(t, guarantee, topics.WithCrews(), topics.WithGates()), dir: t.TempDir(), store: t.TempDir(),
	}
	y.dirs = y.world.dirs(crewInstances)
	require.NoError(t, os.WriteFile(filepath.Join(y.dir, "README"), []byte("begin\n"), 0o600))
	y.git("init", "-q")
	y.git("add", ".")
	y.git("-c", "user.name=y", "-c", "user.email=y@example.com", "commit", "-q", "-m", "begin")
	return y
}

func (y *crewWorld) git(args ...string) string {
	c := exec.Command("git", append([]string{"-C", y.dir}, args...)...)
	out, err := c.CombinedOutput()
	require.NoError(y.t, err, string(out))
	return string(out)
}

// start launches the processes, spawns the agents and has the lead make a group.
func (y *crewWorld) start(loop *kill.Loop) {
	require.NoError(y.t, processors.EnsureTopics(y.ctx, y.brokers, processors.WithTopics(y.catalog), processors.WithPartitions(partitions)))
	y.log = followCrew(y)
	loop.Start()
	y.put(y.catalog.CrewInputs, testCrew, crewbody.Configure{ProjectID: "p", Host: "h", Cwd: y.dir, Repository: testRepo})
	y.put(y.catalog.CrewInputs, testCrew, crewbody.SpawnAsked{AgentID: testLead, RoleID: "lead"})
	y.await("the lead is ready", func(l *crewLog) bool { return l.has("agent:session_ready", "agentId", testLead) })
	members := []string{}
	for n := range crewMembers {
		y.put(y.catalog.CrewInputs, testCrew, crewbody.SpawnAsked{AgentID: memberID(n), RoleID: "developer", ParentID: testLead})
		members = append(members, strconv.Quote(memberID(n)))
	}
	for n := range crewMembers {
		y.await("an agent is ready", func(l *crewLog) bool { return l.has("agent:session_ready", "agentId", memberID(n)) })
	}
	y.say(testLead, "gather "+strings.Join(members, ","))
	y.await("the group is there", func(l *crewLog) bool { return l.has("group:created", "name", "all") })
}

// launch launches the nth process with the groups, or after them the host.
func (y *crewWorld) launch(n int) kill.Victim {
	if n < crewInstances {
		return kill.Start(y.t, crewsProgram, y.child(y.dirs, n))
	}
	y.hostStarts.Add(1)
	return kill.Start(y.t, hostProgram, child{Agent: y.agent, Brokers: y.brokers, Work: y.dir, Store: y.store})
}

// put writes an input to a row.
func (y *crewWorld) put(to topics.Topic[topics.CrewInput], key string, body crewbody.Body) {
	in := topics.CrewInput{InputID: "test/" + strconv.FormatInt(y.inputs.Add(1), 10), Kind: body.Kind(), Body: crewbody.Encode(body)}
	require.NoError(y.t, put(y.ctx, y.world, to, key, in, in.InputID))
}

func (y *crewWorld) say(to, text string) {
	y.put(y.catalog.CrewInputs, testCrew, crewbody.Say{To: to, Text: text})
}

func (y *crewWorld) await(what string, is func(*crewLog) bool) {
	require.Eventually(y.t, func() bool { return y.ctx.Err() != nil || is(y.log) }, 2*time.Minute, 10*time.Millisecond, what)
	require.NoError(y.t, y.ctx.Err(), what)
}

// work has the n-th agent do a round until it is done. A try that a death of the host interrupted is followed by another one
// with other names: the agent does not know how far it came.
func (y *crewWorld) work(ctx context.Context, n, round int) error {
	for try := 0; ctx.Err() == nil; try++ {
		starts, name := y.hostStarts.Load(), fmt.Sprintf("m%d-%d-%d", n, round, try)
		y.say(memberID(n), "work on "+name)
		for waited := 0; ctx.Err() == nil; waited++ {
			if y.log.committed(name) {
				return nil
			}
			if y.hostStarts.Load() > starts && waited > 300 { // 6 s after it began
				break
			}
			if waited > 6000 {
				return fmt.Errorf("%s was not committed; last happened: %s", name, y.log.last(30))
			}
			rest(ctx)
		}
	}
	return ctx.Err()
}

// crewScript is what the agents do. A try has a file of its own, and all want shared.txt.
func crewScript(store string) crewtest.Script {
	command := func(name, payload string) string { return "⟦⟦ " + name + " " + payload + " ⟧⟧" }
	say := func(text string) crewtest.Step { return crewtest.Step{Text: text, Split: 5} }
	return crewtest.Script{Load: true, Store: store, Rules: []crewtest.Rule{
		{Match: `gather (\S+)`, Steps: []crewtest.Step{say(command("CREATE_GROUP", `{"name":"all","members":[{{1}}]}`))}},
		// A prompt that was taken back is sent together with the next try, which is last.
		{Match: `(?s).*work on (m[0-9-]+)`, Steps: []crewtest.Step{
			say("I begin. " + command("LOCK_FILE", `{"filePath":"{{1}}.txt"}`) + command("LOCK_FILE", `{"filePath":"shared.txt"}`)),
			{Save: &crewtest.File{Path: "{{1}}.txt", Content: "{{1}}"}},
			{Save: &crewtest.File{Path: "shared.txt", Content: "{{1}}"}},
			{Ask: &crewtest.Ask{Allowed: []crewtest.Step{say("allowed ")}, Cancelled: []crewtest.Step{say("cancelled ")}}},
			say(command("AGENT_MESSAGE", `{"to":"`+testLead+`","content":"said {{1}}"}`) + " and " +
				command("GROUP_MESSAGE", `{"group":"all","content":"told {{1}}"}`)),
			say(command("COMMIT", `{"message":"work {{1}}","files":["shared.txt"]}`) + " then " +
				command("UNLOCK_FILE", `{"filePath":"shared.txt"}`)),
		}},
	}}
}
