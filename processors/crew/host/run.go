package host

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

// run is one process of an agent.
type run struct {
	host  *Host
	id    string // action_id of its crewbody.Start
	start crewbody.Start
	log   *zap.Logger

	cmd     *exec.Cmd
	group   *group
	in      *stdin
	calls   calls
	session session
	asks    asks
	mode    guarded
	files   *files
	shells  shells
	garbage int // lines that were no messages; only the reader counts

	prompting atomic.Pointer[string] // prompt_id of the prompt that is open; nil for none

	spawned  atomic.Bool   // the process exists
	stopping chan struct{} // closed by stop
	stopOnce sync.Once
	reason   stopReason
	exited   chan struct{} // closed when the process has ended
	done     chan struct{} // closed when everything about the run is queued
	life     context.Context
	end      context.CancelFunc // ends life: nothing waits for the agent any more
}

// stopReason says why the host ends a process.
type stopReason struct {
	host    bool   // the host is stopping
	problem string // what the agent did wrong
}

func newRun(h *Host, id string, start crewbody.Start) *run {
	r := &run{
		host: h, id: id, start: start,
		log:      h.config.Logger.With(zap.String("agent", start.AgentID), zap.String("run", id)),
		stopping: make(chan struct{}), exited: make(chan struct{}), done: make(chan struct{}),
	}
	r.life, r.end = context.WithCancel(h.life)
	r.asks.open, r.calls.waiting, r.shells.open = map[string]ask{}, map[int64]func(topics.Raw, error){}, map[string]*terminal{}
	return r
}

// stop ends the process, or keeps it from being started. It does not wait.
func (r *run) stop(why stopReason) {
	r.stopOnce.Do(func() {
		r.reason = why
		close(r.stopping)
	})
}

// say queues a record for the agent's row, after what the agent did before. It blocks while too much waits for the brokers.
func (r *run) say(body crewbody.Body) { r.put(item{body: body, size: sizeOf(body)}) }

func (r *run) put(it item) {
	if err := r.host.out.put(r.host.life, mailbox.Agent(r.start.AgentID), it); err != nil {
		r.log.Warn("host is stopped before a record of an agent was written", zap.String("kind", it.body.Kind()))
	}
}

// problem tells people of something that has no other effect.
func (r *run) problem(format string, args ...any) {
	r.say(crewbody.Problem{Run: r.id, Message: truncate.Marked(fmt.Sprintf(format, args...), 1000)})
}

func (r *run) failed(stage string, process bool, err error) {
	r.log.Warn("agent cannot be started", zap.String("stage", stage), zap.Error(err))
	r.say(crewbody.StartFailed{Run: r.id, Stage: stage, Error: truncate.Marked(err.Error(), 2000), Process: process})
}

// live is the run from its start to its end. before is closed when the agent's earlier process has ended.
func (r *run) live(before <-chan struct{}) {
	defer close(r.done)
	defer r.end()
	if before != nil {
		<-before
	}
	select {
	case <-r.stopping: // before it began
		if r.reason.host {
			return // the next run of the host is asked again
		}
		r.failed(crewbody.StageProcess, false, fmt.Errorf("stopped before it was started"))
		return
	default:
	}
	pipes, err := r.spawn()
	if err != nil {
		r.failed(crewbody.StageProcess, false, err)
		return
	}
	r.log.Info("agent process started", zap.Int("pid", r.cmd.Process.Pid))
	defer func() { _ = r.files.Close() }()
	var reading sync.WaitGroup
	reading.Go(func() {
		if err := lines(pipes.out, maxLine, r.handle); err != nil {
			r.problem("%s: the agent is stopped", err)
			r.stop(stopReason{problem: err.Error()})
		}
		_, _ = io.Copy(io.Discard, pipes.out) // so that the agent can end
	})
	errors := &output{limit: maxStderr}
	reading.Go(func() { _, _ = io.Copy(errors, pipes.err) })
	var beside sync.WaitGroup
	beside.Go(func() { r.open() })
	beside.Go(func() { r.beat() })
	go func() {
		_ = r.cmd.Wait()
		close(r.exited)
	}()
	select {
	case <-r.exited:
	case <-r.stopping:
		r.in.close()
		r.after(r.host.times.stop, r.group.terminate)
		r.after(r.host.times.stop, r.group.kill)
		<-r.exited
	}
	r.group.close() // with what the agent has left behind
	r.shells.close()
	// A process outside of the group can keep the pipes open.
	limit := time.Now().Add(r.host.times.drain)
	_ = pipes.out.SetReadDeadline(limit)
	_ = pipes.err.SetReadDeadline(limit)
	reading.Wait()
	r.end()
	r.in.close()
	r.in.done.Wait()
	beside.Wait()
	r.asks.close()
	r.shells.wait()
	_ = pipes.out.Close()
	_ = pipes.err.Close()
	r.say(r.exit(errors))
}

// after calls do if the process has not ended within d.
func (r *run) after(d time.Duration, do func()) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-r.exited:
	case <-timer.C:
		do()
	}
}

// pipes are the host's ends of an agent's standard output and error.
type pipes struct{ out, err *os.File }

// spawn starts the process.
func (r *run) spawn() (p pipes, err error) {
	cwd, err := r.host.config.workDir(r.start.Cwd)
	if err != nil {
		return p, err
	}
	argv, err := r.host.config.command(r.start)
	if err != nil {
		return p, err
	}
	if r.files, err = openFiles(cwd, r.start.Cwd); err != nil {
		return p, err
	}
	opened := []io.Closer{r.files}
	defer func() {
		for _, c := range opened {
			_ = c.Close()
		}
	}()
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir, c.Env = cwd, append(r.host.config.environ(), "PWD="+cwd)
	if r.host.config.mode(r.start) == "" {
		c.Env = append(c.Env, openCodeEnv(c.Env)...)
	}
	in, err := c.StdinPipe()
	if err != nil {
		return p, err
	}
	opened = append(opened, in)
	var theirs [2]*os.File
	for i, ours := range []**os.File{&p.out, &p.err} {
		if *ours, theirs[i], err = os.Pipe(); err != nil {
			return p, err
		}
		defer func() { _ = theirs[i].Close() }()
		opened = append(opened, *ours)
	}
	c.Stdout, c.Stderr = theirs[0], theirs[1]
	if r.group, err = r.host.spawner.start(c); err != nil {
		return p, fmt.Errorf("start %s: %w", argv[0], err)
	}
	opened = nil // the process has them
	r.cmd = c
	r.in = &stdin{pipe: in, failed: func() { // an agent that has closed its input, and does not end, is stopped
		r.after(r.host.times.drain, func() { r.stop(stopReason{problem: "the agent closed its standard input"}) })
	}}
	r.spawned.Store(true)
	return p, nil
}

// exit is the record of the end of the process.
func (r *run) exit(errors *output) crewbody.Exited {
	state := r.cmd.ProcessState
	e := crewbody.Exited{Run: r.id, Code: state.ExitCode(), Signal: signalOf(r.cmd)}
	if e.Code < 0 { // by a signal
		e.Code = 1
	}
	select {
	case <-r.stopping:
		e.Stopped, e.Error = r.reason.host, r.reason.problem
		if e.Code == 0 && e.Error != "" { // an agent that the host ends for what it did has not succeeded
			e.Code = 1
		}
	default:
	}
	if text := strings.TrimSpace(strings.ToValidUTF8(string(errors.raw), "")); text != "" { // nothing writes to it any more
		r.log.Debug("standard error of the agent", zap.String("text", text))
		if r.host.config.Policy.Stderr && e.Error == "" && e.Code != 0 {
			e.Error = text
		}
	}
	r.log.Info("agent process ended", zap.Int("code", e.Code), zap.String("signal", e.Signal))
	return e
}

// beat says at intervals that the host is alive. What waits to be written says it, too.
func (r *run) beat() {
	ticker := time.NewTicker(r.host.times.beat)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if r.host.out.idle(mailbox.Agent(r.start.AgentID)) {
				r.say(crewbody.HostBeat{Run: r.id})
			}
		case <-r.exited:
			return
		}
	}
}
