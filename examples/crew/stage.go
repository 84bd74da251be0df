package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/embedded"
)

// errUnexpected is wrapped by the error of something that did not happen as the play promises.
var errUnexpected = errors.New("unexpected")

// stage is where a crew works: a broker, a repository, the processors and the host.
type stage struct {
	wholeShown string // the last permission request that was shown whole
	flags      flags
	screen     *screen
	errs       io.Writer
	dir        string
	marks      marks
	scratch    scratch
	brokers    []string
	host       string // its name
	repo       string // the key of the repository
	lead       string // the lead's ID
	story      *story
	person     person
	commands   map[string][]string

	startWithin time.Duration

	to                processors.Publisher
	processors, hosts *child
}

// run runs the play, or a real agent. Everything that it started has ended when it returns.
func run(ctx context.Context, f flags, in io.Reader, out, errs io.Writer) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if f.brokers != nil {
		if err := checkBrokers(ctx, f.brokers, brokersWithin); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "crew")
	if err != nil {
		return err
	}
	s := &stage{flags: f, screen: &screen{out: out}, errs: errs, dir: dir, brokers: f.brokers, startWithin: startWithin}
	defer func() {
		if len(f.agent) > 0 && s.lead != "" {
			s.screen.line("repository", "is left in %s", s.scratch)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	if s.scratch, err = newScratch(ctx, dir); err != nil {
		return err
	}
	logger := newLogger(errs, f.verbose)
	if s.brokers == nil {
		broker, err := embedded.Start(embedded.Config{Logger: logger})
		if err != nil {
			return err
		}
		defer func() { _ = broker.Close() }()
		s.brokers = broker.Addrs()
	}
	catalog, err := catalogOf()
	if err != nil {
		return err
	}
	to, err := processors.NewPublisher(s.brokers, processors.WithLogger(logger))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	// Other runs on the same Kafka are not in the way.
	s.to, s.person.crew = to, "crew-"+newID()
	s.host, s.repo = "desk-"+newID(), "scratch-"+newID()
	s.story = newStory(catalog, s.person.crew, s.tell)
	play := s.play
	if len(f.agent) > 0 {
		play = func(ctx context.Context) error { return s.converse(ctx, in) }
	} else {
		var timed context.CancelFunc
		ctx, timed = context.WithTimeoutCause(ctx, f.timeout, fmt.Errorf("not finished within %s", f.timeout))
		defer timed()
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	return s.with(ctx, play)
}

// prepare says what the agents are.
func (s *stage) prepare(ctx context.Context) error {
	if len(s.flags.agent) > 0 {
		s.commands = map[string][]string{"": s.flags.agent}
		return nil
	}
	s.marks = marks(filepath.Join(s.dir, "marks"))
	if err := os.Mkdir(string(s.marks), 0o755); err != nil {
		return err
	}
	var err error
	s.commands, err = s.scripted(ctx)
	return err
}

// with starts the processes and the follower, calls do, and stops them.
func (s *stage) with(ctx context.Context, do func(ctx context.Context) error) (err error) {
	defer func() { err = errors.Join(err, s.stop()) }()
	starting, started := context.WithTimeoutCause(ctx, s.startWithin,
		fmt.Errorf("not started within %s with the brokers %s: -v shows why", s.startWithin, strings.Join(s.brokers, ",")))
	defer started()
	if err := s.startProcessors(starting); err != nil {
		return err
	}
	following, stop := context.WithCancel(ctx)
	follower, err := s.story.follower(s.brokers)
	if err != nil {
		stop()
		return err
	}
	var running sync.WaitGroup
	running.Go(func() { _ = follower.Run(following) }) // it returns an error only for a second call
	defer running.Wait()
	defer stop()
	select {
	case <-follower.Ready():
	case <-starting.Done():
		return context.Cause(starting)
	}
	opened, err := openDoor(ctx, s.brokers, s.to, s.flags.addr, newLogger(s.errs, s.flags.verbose))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.stop()) }()
	if err := opened.await(starting); err != nil {
		return err
	}
	s.person.url, s.person.token = opened.url(), opened.token
	s.screen.line("door", "%s with the token %s", opened.url(), opened.token)
	s.screen.line("door", "its WebSocket is at %s", opened.socket())
	if err := s.startHost(starting); err != nil {
		return err
	}
	started()
	return do(ctx)
}

func (s *stage) startProcessors(ctx context.Context) (err error) {
	patience := patienceOfPlay
	if len(s.flags.agent) > 0 {
		patience = patienceOfPerson
	}
	s.processors, err = spawn(ctx, childSettings{
		Part: processorsPart, Brokers: s.brokers, Verbose: s.flags.verbose, Patience: patience,
	}, s.errs)
	return err
}

// How long a permission request waits for an answer, in seconds.
const (
	patienceOfPlay   = 6
	patienceOfPerson = 600
)

func (s *stage) startHost(ctx context.Context) (err error) {
	s.hosts, err = spawn(ctx, childSettings{
		Part: hostPart, Brokers: s.brokers, Verbose: s.flags.verbose, Host: s.host, Dir: string(s.scratch), Commands: s.commands,
	}, s.errs)
	return err
}

// stop ends the host first: it writes that its agents have ended.
func (s *stage) stop() (err error) {
	for _, c := range []*child{s.hosts, s.processors} {
		if c != nil {
			err = errors.Join(err, c.stop())
		}
	}
	return err
}

// begin configures the crew and spawns its lead.
func (s *stage) begin(ctx context.Context, task string) error {
	if err := s.person.configure(ctx, s.host, string(s.scratch), s.repo); err != nil {
		return err
	}
	lead, err := s.person.spawn(ctx, "lead", task)
	s.lead = lead
	return err
}

// tell prints an event.
func (s *stage) tell(e event) {
	f := e.fields
	name := func(id string) string { return s.story.name(id) }
	switch e.kind {
	case "agent:spawned":
		s.screen.line(f.Agent.Role.ID, "is spawned as %s", shortID(f.Agent.ID))
	case "agent:spawn_error":
		s.screen.line(name(f.AgentID), "cannot be started: %s", f.message())
	case "agent:session_ready":
		s.screen.line(name(f.AgentID), "has the session %s", f.SessionID)
	case "agent:exit":
		s.screen.line(name(f.AgentID), "its process has ended with code %d", f.Code)
	case "agent:delegated":
		s.screen.line("lead", "delegates to %s: %s", name(f.ChildID), f.Delegation.Task)
	case "delegation:ended":
		s.screen.line("delegation", "%s: %s, %q", f.Delegation.Task, f.Delegation.Status, f.Delegation.Result)
	case "lock:acquired":
		s.screen.line(name(f.AgentID), "has locked %s", f.FilePath)
	case "lock:denied":
		s.screen.line(name(f.AgentID), "does not get %s: %s has it", f.FilePath, name(f.HolderID))
	case "lock:released":
		s.screen.line(name(f.AgentID), "has released %s", f.FilePath)
	case "agent:permission_request":
		s.screen.line(name(f.AgentID), "asks for permission: %s %s", f.Request.ToolName, f.Request.Arguments)
	case "agent:permission_resolved":
		s.screen.line(name(f.AgentID), "its request is %s (%s)", f.Outcome, f.By)
	case "agent:committed":
		s.screen.line(name(f.AgentID), "has committed %v: %s", f.Files, f.message())
	case "agent:response_end":
		if len(s.flags.agent) > 0 {
			s.read(name(f.AgentID), s.story.turn(f.AgentID))
		}
	}
}
