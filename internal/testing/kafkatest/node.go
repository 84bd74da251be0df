package kafkatest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

//go:embed log4j2.properties
var logging []byte

// ErrDown is wrapped by errors about a node that is not running.
var ErrDown = errors.New("node is down")

// node is one broker and controller. Its directory, ports and lock stay its own while it is down.
type node struct {
	id               int
	java, jars       string
	dir              string
	detached         bool
	port, controller *port
	hold             *hold

	mu      sync.Mutex
	process *process
	paused  bool
}

func (n *node) logDir() string         { return filepath.Join(n.dir, "data") }
func (n *node) logPath() string        { return filepath.Join(n.dir, "kafka.log") }
func (n *node) loggingPath() string    { return filepath.Join(n.dir, "log4j2.properties") }
func (n *node) propertiesPath() string { return filepath.Join(n.dir, "server.properties") }

// prepare writes the node's configuration and formats its directory, unless an earlier start did.
func (n *node) prepare(ctx context.Context, clusterID, properties string) error {
	err := errors.Join(
		os.WriteFile(n.propertiesPath(), []byte(properties), 0o644), os.WriteFile(n.loggingPath(), logging, 0o644),
	)
	if err != nil {
		return fmt.Errorf("kafkatest: %w", err)
	}
	if _, err := os.Stat(filepath.Join(n.logDir(), "meta.properties")); err == nil {
		return nil
	}
	cmd := n.command(ctx, "-Xmx128m", "kafka.tools.StorageTool", "format", "-t", clusterID, "-c", n.propertiesPath())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kafkatest: format node %d: %w: %s", n.id, errors.Join(err, ctx.Err()), lastLines(out, 10))
	}
	return nil
}

// start launches the process and does not wait until it answers.
func (n *node) start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process.running() {
		return fmt.Errorf("kafkatest: node %d is running", n.id)
	}
	log, err := os.OpenFile(n.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("kafkatest: %w", err)
	}
	defer log.Close()
	if err = n.hold.clear(); err != nil {
		return fmt.Errorf("kafkatest: %w", err)
	}
	cmd := n.command(context.Background(), "-Xmx512m", "kafka.Kafka", n.propertiesPath())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{n.hold.file}
	cmd.SysProcAttr = attributes(n.detached)
	p, err := launch(cmd)
	if err != nil {
		return fmt.Errorf("kafkatest: start node %d: %w", n.id, err)
	}
	n.process, n.paused = p, false
	if err = n.hold.write(owner{pid: cmd.Process.Pid, port: n.port.number}); err != nil {
		return errors.Join(fmt.Errorf("kafkatest: %w", err), p.kill())
	}
	return nil
}

// command is Java as a small broker wants it: the serial collector and no shared statistics start it in half the time.
func (n *node) command(ctx context.Context, heap string, args ...string) *exec.Cmd {
	args = append([]string{
		heap, "-XX:+UseSerialGC", "-XX:-UsePerfData", "-XX:+ExitOnOutOfMemoryError",
		"-Dlog4j2.configurationFile=" + n.loggingPath(), "-cp", filepath.Join(n.jars, "*"),
	}, args...)
	cmd := exec.CommandContext(ctx, n.java, args...)
	cmd.Dir = n.dir
	return cmd
}

// while calls f with the running process.
func (n *node) while(f func(p *process) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.process.running() {
		return fmt.Errorf("kafkatest: node %d: %w", n.id, ErrDown)
	}
	if err := f(n.process); err != nil {
		return fmt.Errorf("kafkatest: node %d: %w", n.id, err)
	}
	return nil
}

func (n *node) kill() error { return n.while((*process).kill) }

func (n *node) pause() error {
	return n.while(func(p *process) error {
		n.paused = true
		return p.signal(signalPause)
	})
}

func (n *node) resume() error {
	return n.while(func(p *process) error {
		n.paused = false
		return p.signal(signalResume)
	})
}

// stop waits for the end outside the lock, so that a node that does not stop can be killed.
func (n *node) stop(ctx context.Context) error {
	var stopping *process
	err := n.while(func(p *process) error {
		stopping = p
		if err := p.signal(signalStop); err != nil || !n.paused {
			return err
		}
		n.paused = false
		return p.signal(signalResume)
	})
	if err != nil {
		return err
	}
	select {
	case <-stopping.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("kafkatest: node %d has not stopped: %w", n.id, ctx.Err())
	}
}

// current is the process of the latest start, ended or not.
func (n *node) current() *process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process
}

// answering says whether the node can be asked: it runs and is not paused.
func (n *node) answering() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process.running() && !n.paused
}

func (n *node) log() string {
	text, err := os.ReadFile(n.logPath())
	if err != nil {
		return err.Error()
	}
	return lastLines(text, 20)
}

// release gives up what the node holds and leaves its process alone.
func (n *node) release() error {
	errs := []error{n.hold.release()}
	for _, p := range []*port{n.port, n.controller} {
		if p != nil {
			errs = append(errs, p.release())
		}
	}
	return errors.Join(errs...)
}

func (n *node) close() error {
	err := n.kill()
	if errors.Is(err, ErrDown) {
		err = nil
	}
	return errors.Join(err, n.release())
}
