package integration

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
)

// instance is a child process that runs the pipeline.
type instance struct {
	*exec.Cmd
	name, dir string
	stdin     io.WriteCloser
	running   chan struct{} // closed when it first runs
	ended     chan struct{} // closed when err is known
	err       error

	mu     sync.Mutex
	errors bytes.Buffer
}

func spawn(t *testing.T, c config) *instance {
	t.Helper()
	more, err := json.Marshal(c.child)
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(),
		childAgent+"="+c.agent, childBrokers+"="+strings.Join(c.brokers, ","), childDir+"="+c.dir,
		childInstance+"="+c.instance, childGuarantee+"="+string(c.guarantee), childSettings+"="+string(more))
	i := &instance{
		Cmd: cmd, name: c.instance, dir: c.dir, running: make(chan struct{}), ended: make(chan struct{}),
	}
	cmd.Stderr = i
	i.stdin, err = cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	go func() {
		defer close(i.ended)
		first := sync.OnceFunc(func() { close(i.running) })
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if lines.Text() == "state "+string(processors.Running) {
				first()
			}
		}
		i.err = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = i.Process.Kill()
		<-i.ended
		if t.Failed() {
			t.Logf("%s printed:\n%s", i.name, i.printed())
		}
	})
	return i
}

// Write takes what the process prints to its standard error.
func (i *instance) Write(p []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.errors.Write(p)
}

func (i *instance) printed() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.errors.String()
}

// signal is for SIGKILL, SIGSTOP and SIGCONT.
func (i *instance) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	require.NoError(t, i.Process.Signal(s))
}

// kill ends the process as a crash of the machine would, for all it knows.
func (i *instance) kill(t *testing.T) {
	t.Helper()
	i.signal(t, syscall.SIGKILL)
	<-i.ended
}

// stop lets the process drain, and reports how it ended.
func (i *instance) stop() error {
	_ = i.stdin.Close()
	<-i.ended
	return i.err
}

// jump sets the process's clock forward, or back.
func (i *instance) jump(t *testing.T, by time.Duration) {
	t.Helper()
	_, err := fmt.Fprintf(i.stdin, "clock %s\n", by)
	require.NoError(t, err)
}

// end waits for the process to end by itself.
func (i *instance) end(t *testing.T, limit time.Duration) {
	t.Helper()
	select {
	case <-i.ended:
	case <-time.After(limit):
		require.Fail(t, "it does not end", "%s within %s", i.name, limit)
	}
}

// refuses expects that the process ends by itself with an error that says so.
func (i *instance) refuses(t *testing.T, says ...string) {
	t.Helper()
	i.end(t, wait)
	require.Error(t, i.err)
	for _, s := range says {
		require.Contains(t, i.printed(), s)
	}
}
