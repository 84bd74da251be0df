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

// node is one broker and controller. It keeps its directory, ports and lock while it is down.
type node struct {
	id               int
	java, jars       string
	dir              string
	detached         bool
	optimized        bool
	port, controller *port
	oauth            *port // nil without Options.OAuth
	lock             *dirLock

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

// start starts the process. It does not wait until the node is ready.
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
	if err = n.lock.clear(); err != nil {
		return fmt.Errorf("kafkatest: %w", err)
	}
	cmd := n.command(context.Background(), "-Xmx512m", "kafka.Kafka", n.propertiesPath())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{n.lock.file}
	cmd.SysProcAttr = attributes(n.detached)
	p, err := launch(cmd)
	if err != nil {
		return fmt.Errorf("kafkatest: start node %d: %w", n.id, err)
	}
	n.process, n.paused = p, false
	if err = n.lock.write(owner{pid: cmd.Process.Pid, port: n.port.number}); err != nil {
		return errors.Join(fmt.Errorf("kafkatest: %w", err), p.kill())
	}
	return nil
}

// command returns a Java command with options for a small broker. The serial collector and no performance data halve the
// start time.
func (n *node) command(ctx context.Context, heap string, args ...string) *exec.Cmd {
	args = append([]string{
		heap, "-XX:+UseSerialGC", "-XX:-UsePerfData", "-XX:+ExitOnOutOfMemoryError",
		"-Dlog4j2.configurationFile=" + n.loggingPath(), "-cp", filepath.Join(n.jars, "*"),
	}, args...)
	if !n.optimized {
		args = append([]string{"-XX:TieredStopAtLevel=1"}, args...)
	}
	cmd := exec.CommandContext(ctx, n.java, args...)
	cmd.Dir = n.dir
	return cmd
}

// withProcess calls f with the running process. It returns ErrDown if there is none.
func (n *node) withProcess(f func(p *process) error) error {
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

func (n *node) kill() error { return n.withProcess((*process).kill) }

func (n *node) pause() error {
	return n.withProcess(func(p *process) error {
		n.paused = true
		return p.signal(signalPause)
	})
}

func (n *node) resume() error {
	return n.withProcess(func(p *process) error {
		n.paused = false
		return p.signal(signalResume)
	})
}

// stop waits for the exit without holding the mutex, so that a node that does not stop can be killed.
func (n *node) stop(ctx context.Context) error {
	var stopping *process
	err := n.withProcess(func(p *process) error {
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

// current returns the process of the latest start, which may have ended.
func (n *node) current() *process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process
}

// isResponsive reports whether the node is running and not paused.
func (n *node) isResponsive() bool {
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

// release releases the node's lock and ports. It does not stop its process.
func (n *node) release() error {
	errs := []error{n.lock.release()}
	for _, p := range []*port{n.port, n.controller, n.oauth} {
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
