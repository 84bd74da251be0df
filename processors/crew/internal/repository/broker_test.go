package repository

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/internal/git"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

const waitLimit = time.Minute

// stage is a broker with the group of repositories. The test is the agents and the host, which works in a real repository.
type stage struct {
	t         *testing.T
	guarantee processors.Guarantee
	brokers   []string
	topics    topics.Catalog
	to        *processors.KafkaPublisher
	dir       string

	mu      sync.Mutex
	running *processors.Processor
	number  int64          // of the host's last record
	actions map[string]int // how often each was written
	events  []topics.CrewEvent
	seen    map[string]bool // the IDs of events
}

func newStage(t *testing.T, guarantee processors.Guarantee) *stage {
	t.Helper()
	s := &stage{
		t: t, guarantee: guarantee, brokers: testbroker.Start(t), actions: map[string]int{}, seen: map[string]bool{},
		dir: newOnDisk(t, "shared.txt").dir,
	}
	var err error
	s.topics, err = topics.For(testbroker.Agent(), topics.WithGates(), topics.WithCrews())
	require.NoError(t, err)
	s.to, err = processors.NewPublisher(s.brokers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.to.Close()) })
	return s
}

// start runs a function until the test ends or stop is called.
func (s *stage) start(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ran; !errors.Is(err, processors.ErrKilled) {
			require.NoError(s.t, err)
		}
	})
	s.t.Cleanup(stop)
	return stop
}

// run starts the group and waits until its state is Running.
func (s *stage) run() (kill func()) {
	s.t.Helper()
	group, err := Group(s.topics.Agent, Config{})
	require.NoError(s.t, err)
	p, err := processors.New(s.brokers, group.Graph(), processors.WithTopics(s.topics), processors.WithPartitions(2),
		processors.WithInstance("one"), processors.WithGuarantee(s.guarantee), processors.WithTick(10*time.Millisecond))
	require.NoError(s.t, err)
	stop := s.start(p.Run)
	require.Eventually(s.t, func() bool { return p.Health().State == processors.Running }, waitLimit, 5*time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = p
	return func() {
		p.Kill()
		stop()
	}
}

// follow runs a reader of a topic from its beginning.
func (s *stage) follow(topic string, read func(processors.Inbound)) {
	s.t.Helper()
	f, err := processors.NewTableFollower(s.brokers, []string{topic}, read)
	require.NoError(s.t, err)
	s.start(f.Run)
}

// host does the actions, also those that are written again.
func (s *stage) host() {
	s.follow(s.topics.CrewActions.Name(), func(r processors.Inbound) {
		a := s.topics.CrewActions.Codec().Unmarshal(r.Value).Value
		s.mu.Lock()
		s.actions[a.ActionID]++
		s.number++
		number := s.number
		s.mu.Unlock()
		var receipt crewbody.Receipt
		switch a.Kind {
		case "commit":
			body, err := crewbody.Decode[crewbody.Commit](a.Body)
			if err != nil {
				s.t.Error(err)
			}
			receipt = git.Commit(context.Background(), body, a.ActionID)
		case "dirty":
			body, err := crewbody.Decode[crewbody.Dirty](a.Body)
			if err != nil {
				s.t.Error(err)
			}
			receipt = git.Dirty(context.Background(), body, a.ActionID)
		}
		s.publish(mailbox.ID(a.Subject), topics.CrewInput{
			InputID: fmt.Sprint("host/dock/", number), Kind: receipt.Kind(), From: "host/dock", Number: number,
			Body: crewbody.Encode(receipt),
		})
	})
}

// watch keeps the events.
func (s *stage) watch() {
	s.follow(s.topics.CrewEvents.Name(), func(r processors.Inbound) {
		e := s.topics.CrewEvents.Codec().Unmarshal(r.Value).Value
		id := string(r.Header(topics.HeaderID))
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.seen[id] && s.guarantee == processors.ExactlyOnce {
			s.t.Errorf("event %s was written twice", id)
		}
		if !s.seen[id] {
			s.seen[id] = true
			s.events = append(s.events, e)
		}
	})
}

func (s *stage) publish(key string, in topics.CrewInput) {
	out, err := processors.OutboundOf(s.topics.CrewRepositoryInputs, key, in, in.InputID)
	if err == nil {
		err = s.to.Publish(context.Background(), out)
	}
	if err != nil {
		s.t.Error(err)
	}
}

// say writes a command of an agent.
func (s *stage) say(m crewbody.Member, id, name, payload string) {
	body := crewbody.Command{Member: m, Name: name, Payload: topics.Raw(payload)}
	s.publish("harbor", topics.CrewInput{InputID: id, Kind: body.Kind(), Body: crewbody.Encode(body)})
}

// row is the repository's row.
func (s *stage) row() *State {
	s.mu.Lock()
	p := s.running
	s.mu.Unlock()
	value, err := p.Get("harbor")
	if err != nil {
		return nil
	}
	row, err := Table.Of(value)
	if err != nil {
		s.t.Error(err)
	}
	return row
}

func (s *stage) count(kind string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if e.Type == kind {
			n++
		}
	}
	return n
}

// Agents of one repository lock and commit at once while the group is killed again and again. Each of their commands has its
// effect once, and each commit has exactly the files of its agent.
func TestCommitsAreMadeOnceWhileTheGroupIsKilled(t *testing.T) {
	const agents, rounds = 4, 3
	for _, g := range testbroker.Guarantees(t, processors.AtLeastOnce, processors.ExactlyOnce) {
		t.Run(string(g), func(t *testing.T) {
			s := newStage(t, g)
			kill := s.run()
			s.host()
			s.watch()
			d := &onDisk{t: t, dir: s.dir}
			crew := make([]crewbody.Member, agents)
			for i := range crew {
				crew[i] = member(fmt.Sprintf("%08d-agent", i), "crew-1", "", "developer", "Developer")
				crew[i].Cwd = s.dir
				s.say(crew[i], fmt.Sprint(i, "/lock"), "LOCK_FILE", fmt.Sprintf(`{"filePath":"agent %d/*"}`, i))
			}
			for i, m := range crew {
				s.say(m, fmt.Sprint(i, "/denied"), "LOCK_FILE", fmt.Sprintf(`{"filePath":"agent %d/x"}`, (i+1)%agents))
			}
			for round := range rounds {
				for i, m := range crew {
					d.write(fmt.Sprintf("agent %d/%d.txt", i, round), "x\n")
					s.say(m, fmt.Sprint(i, "/commit/", round), "COMMIT", fmt.Sprintf(`{"message":"agent %d, %d"}`, i, round))
					if round == rounds-1 {
						s.say(m, fmt.Sprint(i, "/unlock"), "UNLOCK_FILE", fmt.Sprintf(`{"filePath":"agent %d/*"}`, i))
					}
				}
				kill()
				kill = s.run()
				want := (round + 1) * agents
				require.Eventually(t, func() bool { return s.count("agent:committed") == want }, waitLimit, 5*time.Millisecond)
			}
			require.Equal(t, agents, s.count("lock:denied"))
			require.Eventually(t, func() bool { return s.count("lock:released") == agents }, waitLimit, 5*time.Millisecond)
			require.Eventually(t, func() bool { r := s.row(); return r != nil && len(r.Locks) == 0 }, waitLimit, 5*time.Millisecond)

			s.mu.Lock()
			defer s.mu.Unlock()
			for i, e := range s.events {
				require.EqualValues(t, i+1, e.Seq, "no event is missing or doubled")
			}
			subjects := strings.Split(strings.TrimSpace(d.git("log", "--format=%s")), "\n")
			slices.Sort(subjects)
			require.Len(t, subjects, agents*rounds+1)
			require.Len(t, slices.Compact(subjects), agents*rounds+1, "no commit is made twice")
			for _, id := range strings.Fields(d.git("rev-list", "--no-merges", "HEAD~"+fmt.Sprint(agents*rounds)+"..HEAD")) {
				subject := strings.TrimSpace(d.git("log", "-1", "--format=%s", id))
				dir, round, _ := strings.Cut(subject, ", ")
				require.Equal(t, filepath.ToSlash(dir)+"/"+round+".txt", strings.TrimSpace(d.git(
					"diff-tree", "-r", "--no-commit-id", "--name-only", id)))
			}
		})
	}
}

// A lock expires at its time although the group did not run then, and its event is written once.
func TestLockExpiresAcrossARestart(t *testing.T) {
	for _, g := range testbroker.Guarantees(t, processors.AtLeastOnce, processors.ExactlyOnce) {
		t.Run(string(g), func(t *testing.T) {
			s := newStage(t, g)
			kill := s.run()
			s.watch()
			body := crewbody.LockAsked{Member: mira, FilePath: "a.go", TTLMS: 1000}
			s.publish("harbor", topics.CrewInput{InputID: "ask", Kind: body.Kind(), Body: crewbody.Encode(body)})
			require.Eventually(t, func() bool { return s.count("lock:acquired") == 1 }, waitLimit, 5*time.Millisecond)
			kill()
			s.run()
			require.Eventually(t, func() bool { return s.count("lock:expired") == 1 }, waitLimit, 5*time.Millisecond)
			s.say(noor, "lock", "LOCK_FILE", `{"filePath":"a.go"}`)
			require.Eventually(t, func() bool { return s.count("lock:acquired") == 2 }, waitLimit, 5*time.Millisecond)
			require.Equal(t, 1, s.count("lock:expired"))
			require.Eventually(t, func() bool { return s.row().GetToken() == 2 }, waitLimit, 5*time.Millisecond, "the row follows its events")
		})
	}
}
