package whole

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

const (
	memoirInstances = 2
	sessionsPerUser = 4
)

// Two processes with turns, memories and the worker that updates them are killed at random moments, while users talk in several
// sessions at once, and the sessions end by inactivity. Each session ends after its last answer and never before one, its whole
// conversation is in its snapshots, and what a user said in any session is in the user's memory.
func TestMemoriesLoseNothingWhileProcessesAreKilled(t *testing.T) {
	sessions := kill.Size(t, "TURNTABLE_SESSIONS", onBroker(24, 48))
	kill.Guarantees(t, func(t *testing.T, guarantee processors.Guarantee) {
		d := newMemoirWorld(t, guarantee, sessions)
		loop := &kill.Loop{
			Seed: 5, Kills: kills(t, 3, 6), Victims: memoirInstances, Launch: d.launch, Judge: d.judge,
			Brokers: d.brokers, Agents: []string{d.agent},
		}
		loop.Each(sessions, 12, d.talk)
		loop.Start()
		d.start()
		loop.Run(d.ctx, t)
	}, processors.AtLeastOnce, processors.ExactlyOnce)
}

// memoirWorld is the processes and the users who talk to them.
type memoirWorld struct {
	*world
	sessions int
	dirs     []string
}

func newMemoirWorld(t *testing.T, guarantee processors.Guarantee, sessions int) *memoirWorld {
	d := &memoirWorld{world: newWorld(t, guarantee, topics.WithMemoir()), sessions: sessions}
	d.dirs = d.world.dirs(memoirInstances)
	return d
}

// start starts the model, which outlives the processes.
func (d *memoirWorld) start() {
	d.model(d.agent, d.think)
	d.followOutputs()
}

func (d *memoirWorld) launch(n int) kill.Victim {
	return kill.Start(d.t, memoirsProgram, d.child(d.dirs, n))
}

// think is the model. It answers with what it knows about the user. Some of its answers take longer than a session may be
// idle.
func (d *memoirWorld) think(ctx context.Context, s think.Step) (think.Reply, error) {
	text := topics.Text(s.Input().Content)
	if strings.HasSuffix(text, "slowly") {
		select {
		case <-time.After(2 * memoirAfter):
		case <-ctx.Done():
			return think.Reply{}, ctx.Err()
		}
	}
	return think.Say("I know " + s.Memoir), nil
}

// user is the user of the n-th session. All users talk in several sessions at the same time.
func (d *memoirWorld) user(n int) string {
	return "u" + strconv.Itoa(n%max(1, d.sessions/sessionsPerUser))
}

// facts are what the user says in the n-th session, one in each message.
func (d *memoirWorld) facts(n int) []string {
	return []string{fmt.Sprintf("fact-%03d-a", n), fmt.Sprintf("fact-%03d-b", n)}
}

// talk has the n-th session.
func (d *memoirWorld) talk(ctx context.Context, n int) error {
	for i, fact := range d.facts(n) {
		text := "note " + fact
		if (n+i)%5 == 0 {
			text += " slowly"
		}
		if _, err := d.say(ctx, fmt.Sprintf("s%03d", n), d.user(n), text); err != nil {
			return err
		}
	}
	return nil
}

// say sends a message and returns the answer.
func (d *memoirWorld) say(ctx context.Context, session, user, text string) (string, error) {
	out, err := d.ask(ctx, session, user, text, session+"/"+text)
	return out.Content, err
}

// eventuallyKnown waits until a new session of a user knows all facts.
func (d *memoirWorld) eventuallyKnown(user string, facts []string) {
	missing := facts
	for n := 0; len(missing) > 0 && d.ctx.Err() == nil; n++ {
		answer, err := d.say(d.ctx, fmt.Sprintf("probe-%s-%d", user, n), user, "what do you know?")
		require.NoError(d.t, err)
		known := factsIn(answer)
		missing = slices.DeleteFunc(slices.Clone(facts), func(f string) bool { return slices.Contains(known, f) })
		if len(missing) > 0 {
			for range 10 {
				rest(d.ctx)
			}
		}
	}
	require.Empty(d.t, missing, "the memory of %s lacks facts", user)
}
