package whole

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
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
		d := newDiary(t, guarantee, sessions)
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

// diary is the system under test and the users who talk to it.
type diary struct {
	t         *testing.T
	ctx       context.Context
	agent     string
	brokers   []string
	guarantee processors.Guarantee
	sessions  int
	catalog   topics.Catalog
	to        *processors.KafkaPublisher
	dirs      [memoirInstances]string

	mu      sync.Mutex
	outputs map[string]chan string // by session: who waits for its next output
}

func newDiary(t *testing.T, guarantee processors.Guarantee, sessions int) *diary {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	t.Cleanup(cancel)
	d := &diary{
		t: t, ctx: ctx, agent: testbroker.Agent(), brokers: testbroker.Start(t), guarantee: guarantee, sessions: sessions,
		outputs: map[string]chan string{},
	}
	var err error
	d.catalog, err = topics.For(d.agent, topics.WithMemoir())
	require.NoError(t, err)
	d.to, err = processors.NewPublisher(d.brokers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.to.Close()) })
	for n := range d.dirs {
		d.dirs[n] = t.TempDir()
	}
	return d
}

// start starts the model, which outlives the processes.
func (d *diary) start() {
	model, err := think.New(d.agent, d.to, think.Func(d.think))
	require.NoError(d.t, err)
	outputs, err := processors.NewFollower(d.brokers, []string{d.catalog.MessageOutput.Name()}, d.onOutput)
	require.NoError(d.t, err)
	ctx, cancel := context.WithCancel(d.ctx)
	var workers errgroup.Group
	workers.Go(func() error { return model.Run(ctx, d.brokers) })
	workers.Go(func() error { return outputs.Run(ctx) })
	d.t.Cleanup(func() {
		cancel()
		require.NoError(d.t, workers.Wait())
	})
	select {
	case <-outputs.Ready():
	case <-d.ctx.Done():
		require.Fail(d.t, "the follower is not ready")
	}
}

func (d *diary) launch(n int) kill.Victim {
	return kill.Start(d.t, memoirsProgram, child{
		Agent: d.agent, Brokers: d.brokers, Dir: d.dirs[n], Instance: "i" + strconv.Itoa(n), Guarantee: d.guarantee,
	})
}

// think is the model. It answers with what it knows about the user. Some of its answers take longer than a session may be
// idle.
func (d *diary) think(ctx context.Context, s think.Step) (think.Reply, error) {
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

func (d *diary) onOutput(r processors.Inbound) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c, ok := d.outputs[string(r.Key)]; ok {
		delete(d.outputs, string(r.Key))
		c <- d.catalog.MessageOutput.Codec().Unmarshal(r.Value).Value.Content
	}
}

// user is the user of the n-th session. All users talk in several sessions at the same time.
func (d *diary) user(n int) string { return "u" + strconv.Itoa(n%max(1, d.sessions/sessionsPerUser)) }

// facts are what the user says in the n-th session, one in each message.
func (d *diary) facts(n int) []string {
	return []string{fmt.Sprintf("fact-%03d-a", n), fmt.Sprintf("fact-%03d-b", n)}
}

// talk has the n-th session.
func (d *diary) talk(ctx context.Context, n int) error {
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
func (d *diary) say(ctx context.Context, session, user, text string) (string, error) {
	answer := make(chan string, 1)
	d.mu.Lock()
	d.outputs[session] = answer
	d.mu.Unlock()
	role := "user"
	m, err := processors.OutboundOf(d.catalog.MessageInput, session, topics.Message{
		SessionID: &session, UserID: &user, Role: &role, Content: topics.Raw(strconv.Quote(text)),
	}, session+"/"+text)
	if err != nil {
		return "", err
	}
	for err = d.to.Publish(ctx, m); err != nil && ctx.Err() == nil; err = d.to.Publish(ctx, m) { // the topics may not exist yet
		rest(ctx)
	}
	select {
	case said := <-answer:
		return said, nil
	case <-ctx.Done():
		return "", fmt.Errorf("%s has no answer to %q: %w", session, text, context.Cause(ctx))
	}
}

// eventuallyKnown waits until a new session of a user knows all facts.
func (d *diary) eventuallyKnown(user string, facts []string) {
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
